#include "passes/remove_states.h"

#include <algorithm>

namespace snug {

namespace {

void remove_values(Section& section, const std::unordered_set<StateId>& removed, const std::vector<StateId>& renumbered) {
  std::vector<ValueId> moved(section.values.size(), ValueId::none());
  std::vector<Value> kept;
  for (std::size_t i = 0; i < section.values.size(); ++i) {
    Value& value = section.values[i];
    if (removed.contains(value.state)) continue;
    if (value.is_state()) value.state = renumbered[value.state.index()];
    moved[i] = ValueId(kept.size());
    kept.push_back(std::move(value));
  }
  section.values = std::move(kept);
  for (Node& node : section.nodes) {
    for (ValueId& id : node.inputs) id = moved[id.index()];
    for (ValueId& id : node.outputs) id = moved[id.index()];
  }
  for (Substitute& each : section.in_evaluation) {
    each = {.trained = moved[each.trained.index()], .evaluated = moved[each.evaluated.index()]};
  }
}

}  // namespace

std::vector<StateId> remove_states(Program& program, const std::unordered_set<StateId>& removed) {
  std::vector<StateId> renumbered;
  std::vector<State> kept;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const bool stays = !removed.contains(StateId(i));
    renumbered.push_back(stays ? StateId(kept.size()) : StateId::none());
    if (stays) kept.push_back(std::move(program.states[i]));
  }
  for (Section& section : program.sections) {
    std::erase_if(section.nodes, [&](const Node& node) { return removed.contains(section.value(node.outputs.front()).state); });
    remove_values(section, removed, renumbered);
  }
  program.states = std::move(kept);
  for (State& state : program.states) {
    if (state.owner.valid()) state.owner = renumbered[state.owner.index()];
  }
  for (const KnownState& known : kKnownStates) {
    StateId& id = program.*known.field;
    if (id.valid()) id = renumbered[id.index()];
  }
  return renumbered;
}

}  // namespace snug
