#include "passes/model/decode_only.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/example_rows.h"
#include "ir/op.h"
#include "passes/model/keep_scores.h"

namespace snug {

namespace {

constexpr std::string_view kPositions = "positions";

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
  if (rows_per_example(loss.attributes) != 1)
    throw_user_error("'{}' takes {} rows an example at once, not one after the other", program.name,
                     rows_per_example(loss.attributes));
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

// The states that a node has in steps, named after its layer and the step's outputs.
std::vector<StateId> add_states(Program& program, const Section& section, const Node& node, std::int64_t context) {
  const InSteps& steps = node.op->in_steps;
  if (steps.states == nullptr) return {};
  std::vector<StateId> added;
  for (const Type& type : steps.states(types_of(section, node), node.attributes, context)) {
    added.emplace_back(program.states.size());
    program.states.push_back(
        {.name = fmt::format("{}.{}", node.layer, steps.op->outputs[added.size()]), .type = type, .role = Role::activation});
  }
  return added;
}

void go_in_steps(Program& program, Section& section, std::int64_t context) {
  const StateId positions(program.states.size());
  program.states.push_back(
      {.name = std::string(kPositions), .type = {.dtype = DType::i32, .shape = {program.microbatch}}, .role = Role::input});
  SectionBuilder builder(program.states, section);
  for (Node& node : section.nodes) {
    const InSteps& steps = node.op->in_steps;
    if (steps.op == nullptr) continue;
    const std::string_view objection =
        steps.objection == nullptr ? "" : steps.objection(types_of(section, node), node.attributes);
    if (!objection.empty())
      throw_user_error("layer '{}' of '{}' cannot take one row after the other: {}", node.layer, program.name, objection);
    const std::vector<StateId> states = add_states(program, section, node, context);
    Attributes attributes;
    for (const auto& [name, constant] : node.attributes.entries()) {
      if (std::ranges::find(steps.attributes, name) != steps.attributes.end()) attributes.set(name, constant);
    }
    node.inputs.resize(steps.inputs);
    node.outputs.resize(1);
    for (const StateId state : states) node.inputs.push_back(builder.read(state));
    for (const StateId state : states) node.outputs.push_back(builder.write(state));
    node.inputs.push_back(builder.read(positions));
    node.op = steps.op;
    node.attributes = std::move(attributes);
  }
}

}  // namespace

Program decode_only(Program program, std::int64_t context) {
  SNUG_CHECK(context >= 1, "a context of {} rows", context);
  std::erase_if(program.sections, [](const Section& section) { return section.kind != SectionKind::eval; });
  Section* section = program.find_section(SectionKind::eval);
  SNUG_CHECK(section != nullptr, "'{}' has no evaluation", program.name);
  section->kind = SectionKind::decode;
  leave_scores(program, *section);
  go_in_steps(program, *section, context);
  // Labels are not known, and nothing is measured. Weights stay, read or not: a file that has them is read whole.
  remove_unused_states(program, {Role::parameter, Role::statistic});
  return program;
}

}  // namespace snug
