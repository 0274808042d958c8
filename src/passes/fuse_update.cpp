#include "passes/fuse_update.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/section_editor.h"
#include "ops/ops.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

class UpdateFuser {
 public:
  UpdateFuser(Program& program, Section& micro, Section& update)
      : program_(program), micro_(micro), update_(update), editor_(program.states, micro) {}

  void run() {
    take_sums_apart();
    place_updates();
    editor_.apply();
    update_.nodes.clear();
    remove_states(program_, accumulators_);
  }

 private:
  // Starts every sum of a parameter's gradients with the first of them instead of an accumulator.
  void take_sums_apart() {
    for (const Node& node : update_.nodes) {
      if (node.op->update != nullptr) accumulators_.insert(update_.state_of(node.inputs[1]));
    }
    for (std::size_t i = 0; i < editor_.nodes(); ++i) {
      Node& node = editor_.node(i);
      const StateId accumulator = micro_.state_of(node.outputs.front());
      if (!accumulators_.contains(accumulator)) continue;
      SNUG_CHECK(node.op->is_sum, "'{}' is written by {}, not by a sum", program_.state(accumulator).name, node.op->name);
      const bool sum_first = micro_.state_of(node.inputs[0]) == accumulator;
      const ValueId summand = node.inputs[sum_first ? 1 : 0];
      const auto [gradient, is_first] = gradients_.try_emplace(accumulator, summand);
      if (is_first) {
        editor_.erase(i);
        continue;
      }
      const State& state = program_.state(accumulator);
      node.inputs = {gradient->second, summand};
      node.outputs = {editor_.add_value({.name = state.name, .type = state.type, .role = Role::gradient})};
      gradient->second = node.outputs.front();
    }
  }

  // After the last node that reads the old weight and the one that makes the gradient, and not before the loss is known: one node
  // may make it and the classifier's gradient.
  std::size_t place_of(const Node& update) {
    std::size_t place = editor_.maker(gradients_.at(update_.state_of(update.inputs[1])));
    for (const std::size_t other :
         {editor_.last_use(editor_.read(update_.state_of(update.inputs[0]))), editor_.maker(editor_.read(program_.metrics))}) {
      if (other != SectionEditor::kNobody) place = std::max(place, other);
    }
    return place;
  }

  void place_updates() {
    SNUG_CHECK(program_.metrics.valid(), "the program '{}' has no metrics to tell a loss that is not finite by", program_.name);
    std::vector<std::size_t> places;
    std::size_t first = editor_.nodes();
    for (const Node& node : update_.nodes) {
      places.push_back(node.op->update == nullptr ? first : place_of(node));
      first = std::min(first, places.back());
    }
    // The guard comes before the first update: by then forward has ended.
    const ValueId guard = emit_guard(first);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Node& node = update_.nodes[i];
      if (node.op->update == nullptr)
        emit_other(node, first, guard);
      else
        emit_update(node, places[i], guard);
    }
  }

  ValueId emit_guard(std::size_t at) {
    std::string layer;  // the loss's
    for (const Node& node : micro_.nodes) {
      if (micro_.state_of(node.outputs.front()) == program_.metrics) layer = node.layer;
    }
    return editor_
        .emit_behind(at, ops::finite_factor, {editor_.read(program_.metrics)}, {},
                     {.name = "update_guard", .layer = layer, .role = Role::scalar, .phase = Phase::update})
        .front();
  }

  // What the section `update` has beside the updates: the count of them.
  void emit_other(const Node& node, std::size_t at, ValueId guard) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(editor_.read(update_.state_of(id)));
    inputs.push_back(guard);
    std::vector<StateId> writes;
    for (const ValueId id : node.outputs) writes.push_back(update_.state_of(id));
    editor_.emit_behind(at, *node.op, std::move(inputs), node.attributes,
                        {.layer = node.layer, .role = Role::optimizer, .phase = Phase::update, .writes = std::move(writes)});
  }

  void emit_update(const Node& node, std::size_t at, ValueId guard) {
    const StateId weight = update_.state_of(node.inputs[0]);
    const ValueId gradient = gradients_.at(update_.state_of(node.inputs[1]));
    std::vector<ValueId> inputs{editor_.read(weight), gradient};
    for (std::size_t i = 2; i < node.inputs.size(); ++i) inputs.push_back(editor_.read(update_.state_of(node.inputs[i])));
    inputs.push_back(guard);
    std::vector<StateId> writes{weight, StateId::none()};
    for (std::size_t i = 0; i < node.op->update->states(node.attributes); ++i)
      writes.push_back(update_.state_of(node.inputs[3 + i]));
    editor_.emit_behind(at, *node.op, std::move(inputs), node.attributes,
                        {.name = program_.state(weight).name,
                         .layer = node.layer,
                         .role = Role::gradient,
                         .phase = Phase::update,
                         .writes = std::move(writes)});
  }

  Program& program_;
  Section& micro_;
  Section& update_;
  SectionEditor editor_;
  std::unordered_set<StateId> accumulators_;
  std::unordered_map<StateId, ValueId> gradients_;  // by accumulator: the value that replaces it now
};

// Why the pass cannot be applied to a program, as the end of a sentence; empty when it can.
std::string objection_to(const Program& program) {
  if (program.microbatch != program.batch) {
    return fmt::format("a step adds up the gradients of {} microbatches before it; give the whole batch one microbatch of {}",
                       (program.batch + program.microbatch - 1) / program.microbatch, program.batch);
  }
  const auto is_micro = [](const Section& section) { return section.kind == SectionKind::micro; };
  if (std::count_if(program.sections.begin(), program.sections.end(), is_micro) > 1)
    return "the program has microbatches of several sizes, whose gradients add up; leave out the pass";
  const Section* update = program.find_section(SectionKind::update);
  if (update == nullptr) return {};
  for (const Node& node : update->nodes) {
    if (node.op->is_early_step)
      return "drop_gradients has taken the gradients' accumulators away already; leave out one of the two";
    if (node.op->measures_gradients && node.attributes.integer_or("finds_overflow", 0) != 0)
      return "dynamic loss scaling looks at all gradients before it; use fp32 or bf16, or leave out the pass";
  }
  const auto measures = [](const Node& node) { return node.op->measures_gradients; };
  if (std::any_of(update->nodes.begin(), update->nodes.end(), measures))
    return "clipping needs the norm of all gradients before it; leave out one of the two";
  return {};
}

}  // namespace

Program fuse_update(Program program, const PassContext& /*context*/) {
  if (const std::string objection = objection_to(program); !objection.empty())
    throw_user_error("pass 'fuse_update' makes each update during backward, but {}", objection);
  Section* micro = program.find_section(SectionKind::micro);
  Section* update = program.find_section(SectionKind::update);
  if (micro != nullptr && update != nullptr && !update->nodes.empty()) UpdateFuser(program, *micro, *update).run();
  return program;
}

}  // namespace snug
