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

void require_examples_of_one_row(const Program& program) {
  const Section* section = program.find_section(SectionKind::eval);
  const NodeId loss = section == nullptr ? NodeId::none() : find_loss(*section);
  if (!loss.valid()) return;
  const std::int64_t rows = rows_per_example(section->nodes[loss.index()].attributes);
  if (rows != 1) throw_user_error("'{}' takes {} rows an example at once, not one after the other", program.name, rows);
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
    const std::string_view objection =
        steps.objection == nullptr ? "" : steps.objection(types_of(section, node), node.attributes);
    if (!objection.empty())
      throw_user_error("layer '{}' of '{}' cannot take one row after the other: {}", node.layer, program.name, objection);
    if (steps.op == nullptr) continue;
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
  require_examples_of_one_row(program);
  program = scores_only(std::move(program));
  go_in_steps(program, *program.find_section(SectionKind::decode), context);
  return program;
}

}  // namespace snug
