#include "autodiff/gradient_flow.h"

#include <algorithm>

#include "ir/op.h"

namespace snug {

GradientFlow gradient_flow(const std::vector<State>& states, const Section& forward) {
  const NodeId loss = find_loss(forward);
  GradientFlow flow{.depends = std::vector<bool>(forward.values.size(), false),
                    .reached = std::vector<bool>(forward.values.size(), false),
                    .node_active = std::vector<bool>(forward.nodes.size(), false)};
  for (std::size_t i = 0; i < forward.values.size(); ++i) {
    const Value& value = forward.values[i];
    flow.depends[i] = value.is_state() && states[value.state.index()].trainable;
  }
  for (const Node& node : forward.nodes) {
    if (node.op->gradients.empty()) continue;
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return flow.depends[id.index()]; });
    for (const ValueId output : node.outputs) {
      // A state that a differentiable op writes (the metrics) is a sink: gradients end there.
      if (any && !forward.value(output).is_state()) flow.depends[output.index()] = true;
    }
  }
  for (std::size_t i = forward.nodes.size(); i-- > 0;) {
    const Node& node = forward.nodes[i];
    const bool wanted = NodeId(i) == loss || std::any_of(node.outputs.begin(), node.outputs.end(),
                                                         [&](ValueId id) { return flow.reached[id.index()]; });
    if (!wanted || node.op->gradients.empty()) continue;
    for (const ValueId input : node.inputs) {
      if (!flow.depends[input.index()]) continue;
      flow.reached[input.index()] = true;
      flow.node_active[i] = true;
    }
  }
  return flow;
}

}  // namespace snug
