#include "ir/loss.h"

#include "base/error.h"
#include "ir/example_rows.h"

namespace snug {

namespace {

// Whether the loss has this input, which may be optional. The value that a kernel adds to is none of its own.
bool has_input(const Node& loss, int input) {
  const std::size_t own = loss.inputs.size() - (accumulates(loss.attributes) ? 1 : 0);
  return input >= 0 && static_cast<std::size_t>(input) < own;
}

// The state of Role::input that the loss reads as this input; none: it reads nothing, or what a node made.
StateId input_state(const Program& program, const Section& section, const Node& loss, int input) {
  if (!has_input(loss, input)) return StateId::none();
  const StateId state = section.state_of(loss.inputs[static_cast<std::size_t>(input)]);
  return state.valid() && program.state(state).role == Role::input ? state : StateId::none();
}

std::int64_t count_classes(const Section& section, const Node& loss) {
  const int classifier = loss.op->loss->classifier;
  if (classifier < 0) return section.value(loss.inputs.front()).type.shape.dims().back();
  return section.value(loss.inputs[static_cast<std::size_t>(classifier)]).type.shape[0];
}

// nullptr: the section has no loss.
const Node* loss_node(const Section& section) {
  const NodeId loss = find_loss(section);
  return loss.valid() ? &section.nodes[loss.index()] : nullptr;
}

}  // namespace

std::string Throughput::field() const { return fmt::format("{}_per_second", unit); }

Throughput throughput_of(const Program& program) {
  const Section* micro = program.find_section(SectionKind::micro);
  const Node* node = micro == nullptr ? nullptr : loss_node(*micro);
  if (node == nullptr) return {};
  return {.unit = node->op->loss->unit, .per_example = rows_per_example(node->attributes)};
}

bool is_better(const LossFacts& facts, double metric, double best) {
  return facts.higher_is_better ? metric > best : metric < best;
}

ProgramLoss loss_of(const Program& program) {
  // What trains nothing still evaluates.
  const Section* section = program.find_section(SectionKind::micro);
  if (section == nullptr) section = program.find_section(SectionKind::eval);
  const Node* node = section == nullptr ? nullptr : loss_node(*section);
  if (node == nullptr) throw_user_error("the program of '{}' has no loss", program.name);
  const LossFacts& facts = *node->op->loss;
  ProgramLoss loss{.node = node, .facts = &facts, .rows_per_example = rows_per_example(node->attributes)};
  loss.labels = input_state(program, *section, *node, facts.labels);
  if (facts.labels >= 0) loss.classes = count_classes(*section, *node);
  loss.weights = input_state(program, *section, *node, facts.weights);
  if (has_input(*node, facts.weights) && !loss.weights.valid())
    throw_user_error("the weights of the rows of '{}' are computed; they must be an input, so that their sum is known",
                     program.name);
  return loss;
}

}  // namespace snug
