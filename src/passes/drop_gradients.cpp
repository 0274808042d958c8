#include "passes/drop_gradients.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/section_editor.h"
#include "ops/random_draws.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

// What a parameter's gradient is added to.
struct Target {
  const FedEarly* how;
  StateId weight, fed, scalars;  // `fed`: the state that takes the gradient in
  Attributes rule;               // constants of the decay and of its rounding
  Attributes rounding;           // nothing: to nearest
  std::string layer;
};
using Targets = std::unordered_map<StateId, Target>;  // by accumulator

std::string_view objection_to(const Section& update) {
  for (const Node& node : update.nodes) {
    if (node.op->measures_gradients && node.attributes.integer_or("finds_overflow", 0) != 0)
      return "dynamic loss scaling looks at all gradients before they count; use fp32 or bf16, or leave out the pass";
  }
  for (const Node& node : update.nodes) {
    if (node.op->measures_gradients) return "clipping needs the norm of all gradients by themselves; leave out one of the two";
    if (node.op->update == nullptr) continue;
    const FedEarly& how = node.op->update->fed_early;
    if (const std::string_view objection = how.objection(node.attributes); !objection.empty()) return objection;
    SNUG_CHECK(how.decay != nullptr, "{} gives neither a way to be fed early nor a reason", node.op->name);
  }
  return {};
}

// How an update rounds its results; the nodes that replace it do the same.
Attributes rounding_of(const Attributes& update) {
  if (update.integer_or("stochastic", 0) == 0) return {};
  return {{"stochastic", std::int64_t{1}}, {"key", update.integer("key")}};
}

Targets find_targets(const Section& update) {
  Targets targets;
  for (const Node& node : update.nodes) {
    if (node.op->update == nullptr) continue;
    Attributes rule = rounding_of(node.attributes);
    for (const char* name : {"momentum", "weight_decay"}) rule.set(name, node.attributes.real(name));
    targets[update.state_of(node.inputs[1])] = {.how = &node.op->update->fed_early,
                                                .weight = update.state_of(node.inputs[0]),
                                                .fed = update.state_of(node.inputs[3]),
                                                .scalars = update.state_of(node.inputs[2]),
                                                .rule = std::move(rule),
                                                .rounding = rounding_of(node.attributes),
                                                .layer = node.layer};
  }
  return targets;
}

// The decay comes before the node that makes the first summand, so that this node can add the summand itself.
void feed(const Program& program, Section& micro, const Targets& targets) {
  SectionEditor editor(program.states, micro);
  std::unordered_map<StateId, std::int64_t> summands;  // so far, by accumulator
  for (std::size_t i = 0; i < editor.nodes(); ++i) {
    const Node node = editor.node(i);
    const StateId accumulator = micro.state_of(node.outputs.front());
    const auto found = targets.find(accumulator);
    if (found == targets.end()) continue;
    SNUG_CHECK(node.op->is_sum, "'{}' is written by {}, not by a sum", program.state(accumulator).name, node.op->name);
    const Target& target = found->second;
    const EmitOptions emit{.layer = node.layer, .role = Role::optimizer, .phase = Phase::backward, .writes = {target.fed}};
    const ValueId summand = node.inputs[micro.state_of(node.inputs[0]) == accumulator ? 1 : 0];
    const std::int64_t number = summands[accumulator]++;
    if (number == 0) {
      const std::size_t maker = micro.value(summand).is_state() ? i : std::min(i, editor.maker(summand));
      editor.emit_before(maker, *target.how->decay,
                         {editor.read(target.fed), editor.read(target.weight), editor.read(target.scalars)}, target.rule, emit);
    }
    if (target.rounding.entries().empty()) {
      editor.emit_instead(i, *node.op, {editor.read(target.fed), summand}, {}, emit);  // which the summand's kernel can do itself
    } else {
      Attributes rounding = target.rounding;
      rounding.set("summand", number % ops::kSummands);
      editor.emit_instead(i, *target.how->add, {editor.read(target.fed), summand, editor.read(target.scalars)}, rounding, emit);
    }
  }
  editor.apply();
}

void only_step(const Program& program, Section& update) {
  const Section old = std::move(update);
  update = {.kind = SectionKind::update, .values = {}, .nodes = {}};
  SectionBuilder builder(program.states, update);
  for (const Node& node : old.nodes) {
    if (node.op->update == nullptr) continue;
    const StateId weight = old.state_of(node.inputs[0]);
    builder.emit(*node.op->update->fed_early.step,
                 {builder.read(weight), builder.read(old.state_of(node.inputs[2])), builder.read(old.state_of(node.inputs[3]))},
                 rounding_of(node.attributes),
                 {.layer = node.layer, .role = Role::parameter, .phase = Phase::update, .writes = {weight}});
  }
}

}  // namespace

Program drop_gradients(Program program, const PassContext& /*context*/) {
  Section* update = program.find_section(SectionKind::update);
  if (update == nullptr || update->nodes.empty()) return program;
  if (const std::string_view objection = objection_to(*update); !objection.empty())
    throw_user_error("pass 'drop_gradients' adds gradients to the momentum, but {}", objection);
  const Targets targets = find_targets(*update);
  for (Section& section : program.sections) {
    if (section.kind == SectionKind::micro) feed(program, section, targets);
  }
  only_step(program, *update);
  std::unordered_set<StateId> accumulators;
  for (const auto& [accumulator, target] : targets) accumulators.insert(accumulator);
  remove_states(program, accumulators);
  return program;
}

}  // namespace snug
