#include "passes/model/evaluate_only.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "ir/op.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

void keep_scores(Program& program, Section& eval) {
  const NodeId loss = find_loss(eval);
  if (!loss.valid() || !eval.nodes[loss.index()].op->loss->has_scores()) return;
  Value& scores = eval.value(eval.nodes[loss.index()].inputs.front());
  SNUG_CHECK(!scores.is_state(), "the scores of '{}' are the state '{}'", program.name, scores.name);
  constexpr std::string_view kName = "scores";
  program.scores = StateId(program.states.size());
  program.states.push_back({.name = std::string(kName), .type = scores.type, .role = Role::activation});
  scores.name = kName;
  scores.role = Role::activation;
  scores.state = program.scores;
  scores.version = 1;  // a state has version 0 before the section writes it
}

// What no section that is left reads or writes. Weights stay all the same: a file that has them is read whole.
void remove_states_of_training(Program& program) {
  std::unordered_set<StateId> removed;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const Role role = program.states[i].role;
    if (role != Role::parameter && role != Role::statistic && role != Role::input) removed.insert(StateId(i));
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

}  // namespace

Program evaluate_only(Program program) {
  std::erase_if(program.sections, [](const Section& section) { return section.kind != SectionKind::eval; });
  Section* eval = program.find_section(SectionKind::eval);
  SNUG_CHECK(eval != nullptr, "'{}' has no evaluation", program.name);
  keep_scores(program, *eval);
  remove_states_of_training(program);
  return program;
}

}  // namespace snug
