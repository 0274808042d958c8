#include "train/initial_values.h"

#include <algorithm>

namespace snug::train {

namespace {

std::vector<bool> states_that_come_from_elsewhere(const Program& program, std::span<const StateId> given) {
  std::vector<bool> elsewhere(program.states.size(), false);
  for (const StateId id : given) elsewhere[id.index()] = true;
  if (const Section* derive = program.find_section(SectionKind::derive)) {
    for (const Node& node : derive->nodes) {
      for (const ValueId output : node.outputs) {
        if (derive->value(output).is_state()) elsewhere[derive->value(output).state.index()] = true;
      }
    }
  }
  return elsewhere;
}

}  // namespace

std::vector<std::size_t> init_nodes_without(const Program& program, std::span<const StateId> given) {
  const Section* init = program.find_section(SectionKind::init);
  if (init == nullptr) return {};
  const std::vector<bool> elsewhere = states_that_come_from_elsewhere(program, given);
  std::vector<bool> read(init->values.size(), false);  // by a node that runs
  std::vector<std::size_t> nodes;
  for (std::size_t i = init->nodes.size(); i-- > 0;) {
    const Node& node = init->nodes[i];
    const bool runs = std::ranges::any_of(node.outputs, [&](ValueId id) {
      const Value& value = init->value(id);
      return read[id.index()] || (value.is_state() && !elsewhere[value.state.index()]);
    });
    if (!runs) continue;
    nodes.push_back(i);
    for (const ValueId input : node.inputs) read[input.index()] = true;
  }
  std::ranges::reverse(nodes);
  return nodes;
}

}  // namespace snug::train
