#include "ir/loss.h"

#include <algorithm>

#include "base/error.h"
#include "ir/example_rows.h"

namespace snug {

namespace {

// The state of Role::input that the loss reads there; none: it reads nothing there, or what a node made.
StateId input_state(const Program& program, const Section& section, const Node& loss, int input) {
  if (input < 0 || static_cast<std::size_t>(input) >= loss.inputs.size()) return StateId::none();
  const StateId state = section.state_of(loss.inputs[static_cast<std::size_t>(input)]);
  return state.valid() && program.state(state).role == Role::input ? state : StateId::none();
}

}  // namespace

const Node* find_loss(const Section& section) {
  const auto found =
      std::find_if(section.nodes.begin(), section.nodes.end(), [](const Node& node) { return node.op->loss != nullptr; });
  return found == section.nodes.end() ? nullptr : &*found;
}

std::string Throughput::field() const { return fmt::format("{}_per_second", unit); }

Throughput throughput_of(const Program& program) {
  const Section* micro = program.find_section(SectionKind::micro);
  const Node* node = micro == nullptr ? nullptr : find_loss(*micro);
  if (node == nullptr) return {};
  return {.unit = node->op->loss->unit, .per_example = rows_per_example(node->attributes)};
}

bool is_better(const LossFacts& facts, double metric, double best) {
  return facts.higher_is_better ? metric > best : metric < best;
}

ProgramLoss loss_of(const Program& program) {
  const Section* micro = program.find_section(SectionKind::micro);
  const Node* node = micro == nullptr ? nullptr : find_loss(*micro);
  if (node == nullptr) throw_user_error("the program of '{}' has no loss", program.name);
  const LossFacts& facts = *node->op->loss;
  ProgramLoss loss{.node = node, .facts = &facts, .rows_per_example = rows_per_example(node->attributes)};
  loss.labels = input_state(program, *micro, *node, facts.labels);
  if (facts.labels >= 0) loss.classes = micro->value(node->inputs.front()).type.shape.dims().back();
  loss.weights = input_state(program, *micro, *node, facts.weights);
  const bool weighs = facts.weights >= 0 && static_cast<std::size_t>(facts.weights) < node->inputs.size();
  if (weighs && !loss.weights.valid())
    throw_user_error("the weights of the rows of '{}' are computed; they must be an input, so that their sum is known",
                     program.name);
  return loss;
}

}  // namespace snug
