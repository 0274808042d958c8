#include "passes/model/choose_layouts.h"

#include <optional>
#include <vector>

#include "ir/op.h"
#include "passes/model/state_types.h"

namespace snug {

Program choose_layouts(Program model, const Backend& backend) {
  if (backend.preferred_weight_layout == nullptr) return model;
  std::vector<std::optional<Layout>> wanted(model.states.size());
  std::vector<bool> disputed(model.states.size(), false);
  const auto look_at = [&](const Section& forward, const Node& node) {
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
  };
  for (const Section& section : model.sections) {
    if (section.kind != SectionKind::forward) continue;
    for (const Node& node : section.nodes) look_at(section, node);
  }
  for (std::size_t i = 0; i < model.states.size(); ++i) {
    if (wanted[i] && !disputed[i]) model.states[i].type.layout = *wanted[i];
  }
  follow_states(model);
  return model;
}

}  // namespace snug
