#include "passes/model/keep_scores.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

constexpr std::string_view kName = "scores";

}  // namespace

void add_scores(Program& program, const Type& type) {
  program.scores = StateId(program.states.size());
  program.states.push_back({.name = std::string(kName), .type = type, .role = Role::activation});
}

void keep_scores(Program& program, Section& section, NodeId loss) {
  Value& scores = section.value(section.nodes[loss.index()].inputs.front());
  SNUG_CHECK(!scores.is_state(), "the scores of '{}' are the state '{}'", program.name, scores.name);
  add_scores(program, scores.type);
  scores.name = kName;
  scores.role = Role::activation;
  scores.state = program.scores;
  scores.version = 1;  // a state has version 0 before the section writes it
}

void remove_unused_states(Program& program, const std::unordered_set<Role>& kept) {
  std::unordered_set<StateId> removed;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (!kept.contains(program.states[i].role)) removed.insert(StateId(i));
  }
  for (const Section& section : program.sections) {
    const auto uses = [&](ValueId id) { removed.erase(section.state_of(id)); };
    for (const Node& node : section.nodes) {
      std::ranges::for_each(node.inputs, uses);
      std::ranges::for_each(node.outputs, uses);
    }
  }
  remove_states(program, removed);
}

}  // namespace snug
