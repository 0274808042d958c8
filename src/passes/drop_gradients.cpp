#include "passes/drop_gradients.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/builder.h"
#include "ops/ops.h"
#include "ops/random_draws.h"
#include "ops/sgd.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

StateId state_of(const Section& section, ValueId id) { return section.value(id).state; }

// What a parameter's gradient is added to.
struct Target {
  StateId weight, momentum, scalars;
  Attributes rule;      // momentum, weight_decay, how it is rounded
  Attributes rounding;  // nothing: to nearest
  std::string layer;
};
using Targets = std::unordered_map<StateId, Target>;  // by accumulator

std::string objection_to(const Section& update) {
  for (const Node& node : update.nodes) {
    if (node.op == &ops::clip_factor && node.attributes.integer_or("finds_overflow", 0) != 0)
      return "dynamic loss scaling looks at all gradients before they count; use fp32 or bf16, or leave out the pass";
    if (node.op == &ops::sum_of_squares) continue;
    if (node.op == &ops::sgd_quantised)
      return "a momentum in 8 bits would be rounded at every addition; leave out one of the two";
    if (node.op != &ops::sgd || ops::sgd_clips(node.attributes, node.inputs.size()))
      return "clipping needs the norm of all gradients by themselves; leave out one of the two";
    if (!ops::sgd_has_momentum(node.attributes)) return "without a momentum there is nothing to add them to; set one";
    if (node.attributes.integer("nesterov") != 0)
      return "Nesterov's step needs the gradient beside the momentum; say nesterov = false, --nesterov no";
  }
  return {};
}

// How an update rounds its results, which those that stand for it do too.
Attributes rounding_of(const Attributes& update) {
  if (!ops::sgd_rounds_by_chance(update)) return {};
  return {{"stochastic", std::int64_t{1}}, {"key", update.integer("key")}};
}

Targets find_targets(const Section& update) {
  Targets targets;
  for (const Node& node : update.nodes) {
    Attributes rule = rounding_of(node.attributes);
    for (const char* name : {"momentum", "weight_decay"}) rule.set(name, node.attributes.real(name));
    targets[state_of(update, node.inputs[1])] = {.weight = state_of(update, node.inputs[0]),
                                                 .momentum = state_of(update, node.inputs[3]),
                                                 .scalars = state_of(update, node.inputs[2]),
                                                 .rule = std::move(rule),
                                                 .rounding = rounding_of(node.attributes),
                                                 .layer = node.layer};
  }
  return targets;
}

// The decay stands before the node that makes the first summand, so that this node can add the summand to the momentum itself.
void add_to_momentum(const Program& program, Section& micro, const Targets& targets) {
  std::vector<std::size_t> maker(micro.values.size(), 0);
  for (std::size_t i = 0; i < micro.nodes.size(); ++i) {
    for (const ValueId id : micro.nodes[i].outputs) maker[id.index()] = i;
  }
  std::vector<Node> nodes = std::move(micro.nodes);
  micro.nodes.clear();
  SectionBuilder builder(program.states, micro);
  std::vector<std::vector<Node>> before(nodes.size());
  std::unordered_map<StateId, std::int64_t> summands;  // so far, by accumulator
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    const StateId accumulator = state_of(micro, node.outputs.front());
    const auto found = targets.find(accumulator);
    if (found == targets.end()) continue;
    SNUG_CHECK(node.op == &ops::add, "'{}' is written by {}, not by a sum", program.state(accumulator).name, node.op->name);
    const Target& target = found->second;
    const ValueId summand = node.inputs[state_of(micro, node.inputs[0]) == accumulator ? 1 : 0];
    const std::int64_t number = summands[accumulator]++;
    if (number == 0) {
      builder.emit(ops::momentum_decay,
                   {builder.read(target.momentum), builder.read(target.weight), builder.read(target.scalars)}, target.rule,
                   {.layer = node.layer, .role = Role::optimizer, .phase = Phase::backward, .writes = {target.momentum}});
      before[std::min(i, micro.value(summand).is_state() ? i : maker[summand.index()])].push_back(std::move(micro.nodes.back()));
      micro.nodes.clear();
    }
    const EmitOptions emit{.layer = node.layer, .role = Role::optimizer, .phase = Phase::backward, .writes = {target.momentum}};
    if (target.rounding.entries().empty()) {
      builder.emit(ops::add, {builder.read(target.momentum), summand}, {}, emit);  // which the summand's kernel can do itself
    } else {
      Attributes rounding = target.rounding;
      rounding.set("summand", number % ops::kSummands);
      builder.emit(ops::momentum_add, {builder.read(target.momentum), summand, builder.read(target.scalars)}, rounding, emit);
    }
    node = std::move(micro.nodes.back());
    micro.nodes.clear();
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (Node& decay : before[i]) micro.nodes.push_back(std::move(decay));
    micro.nodes.push_back(std::move(nodes[i]));
  }
}

void only_step(const Program& program, Section& update) {
  const Section old = std::move(update);
  update = {.kind = SectionKind::update, .values = {}, .nodes = {}};
  SectionBuilder builder(program.states, update);
  for (const Node& node : old.nodes) {
    const StateId weight = state_of(old, node.inputs[0]);
    builder.emit(ops::momentum_step,
                 {builder.read(weight), builder.read(state_of(old, node.inputs[2])), builder.read(state_of(old, node.inputs[3]))},
                 rounding_of(node.attributes),
                 {.layer = node.layer, .role = Role::parameter, .phase = Phase::update, .writes = {weight}});
  }
}

}  // namespace

Program drop_gradients(Program program, const PassContext& /*context*/) {
  Section* micro = find_section(program, SectionKind::micro);
  Section* update = find_section(program, SectionKind::update);
  if (micro == nullptr || update == nullptr || update->nodes.empty()) return program;
  if (const std::string objection = objection_to(*update); !objection.empty())
    throw_user_error("pass 'drop_gradients' adds gradients to the momentum, but {}", objection);
  const Targets targets = find_targets(*update);
  add_to_momentum(program, *micro, targets);
  only_step(program, *update);
  std::unordered_set<StateId> accumulators;
  for (const auto& [accumulator, target] : targets) accumulators.insert(accumulator);
  remove_states(program, accumulators);
  return program;
}

}  // namespace snug
