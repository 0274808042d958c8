#include "passes/choose_layouts.h"

#include <optional>
#include <vector>

#include "ir/op.h"
#include "passes/state_types.h"

namespace snug {

Program choose_layouts(Program model, const Backend& backend) {
  if (backend.preferred_weight_layout == nullptr) return model;
  const Section& forward = model.section(SectionKind::forward);
  std::vector<std::optional<Layout>> wanted(model.states.size());
  std::vector<bool> disputed(model.states.size(), false);
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
  for (std::size_t i = 0; i < model.states.size(); ++i) {
    if (wanted[i] && !disputed[i]) model.states[i].type.layout = *wanted[i];
  }
  follow_states(model);
  return model;
}

}  // namespace snug
