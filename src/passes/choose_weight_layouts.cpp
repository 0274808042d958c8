#include "passes/choose_weight_layouts.h"

#include <optional>
#include <vector>

#include "ir/op.h"

namespace snug {

Graph choose_weight_layouts(Graph graph, const Backend& backend) {
  if (backend.preferred_weight_layout == nullptr) return graph;
  Section& forward = graph.forward;
  std::vector<std::optional<Layout>> wanted(graph.states.size());
  std::vector<bool> disputed(graph.states.size(), false);
  for (const Node& node : forward.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = forward.value(node.inputs[i]);
      if (!value.is_state()) continue;
      const std::size_t state = value.state.index();
      std::optional<Layout> layout;
      if (static_cast<int>(i) == node.op->weight_operand)
        layout = backend.preferred_weight_layout(backend.query(node, types_of(forward, node)));
      if (!layout || (wanted[state] && *wanted[state] != *layout)) disputed[state] = true;
      wanted[state] = layout;
    }
  }
  for (std::size_t i = 0; i < graph.states.size(); ++i) {
    if (wanted[i] && !disputed[i]) graph.states[i].type.layout = *wanted[i];
  }
  for (Value& value : forward.values) {
    if (value.is_state()) value.type = graph.states[value.state.index()].type;
  }
  return graph;
}

}  // namespace snug
