#include "passes/model/keep_scores.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/op.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

constexpr std::string_view kName = "scores";

// The loss goes; what it judges stays.
void leave_scores(Program& program, Section& section) {
  const auto measures = [&](const Node& node) {
    const StateId written = section.state_of(node.outputs.front());
    return written.valid() && written == program.metrics;
  };
  std::erase_if(section.nodes, measures);
  const NodeId id = find_loss(section);
  SNUG_CHECK(id.valid(), "'{}' has no loss", program.name);
  Node& loss = section.nodes[id.index()];
  const LossFacts& facts = *loss.op->loss;
  if (facts.makes_scores != nullptr) {
    loss.op = facts.makes_scores;
    loss.inputs = {loss.inputs.front(), loss.inputs[static_cast<std::size_t>(facts.classifier)]};
    loss.attributes = {};
    const NodeTypes types = types_of(section, {.op = loss.op, .inputs = loss.inputs});
    add_scores(program, infer_types(*loss.op, {types.inputs, loss.attributes}).front());
    loss.outputs = {SectionBuilder(program.states, section).write(program.scores)};
    return;
  }
  if (!facts.has_scores()) throw_user_error("'{}' has no scores to choose a row's class by", program.name);
  keep_scores(program, section, id);
  section.nodes.erase(section.nodes.begin() + static_cast<std::ptrdiff_t>(id.index()));
}

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

Program scores_only(Program program) {
  std::erase_if(program.sections, [](const Section& section) { return section.kind != SectionKind::eval; });
  Section* section = program.find_section(SectionKind::eval);
  SNUG_CHECK(section != nullptr, "'{}' has no evaluation", program.name);
  section->kind = SectionKind::decode;
  leave_scores(program, *section);
  // Weights stay, read or not: a file that has them is read whole.
  remove_unused_states(program, {Role::parameter, Role::statistic});
  return program;
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
