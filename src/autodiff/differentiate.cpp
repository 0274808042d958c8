#include "autodiff/differentiate.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "autodiff/gradient_flow.h"
#include "base/error.h"
#include "ir/builder.h"
#include "ops/ops.h"

namespace snug {

namespace {

// The gradients' accumulators, which the sections of all shapes share.
class Accumulators {
 public:
  explicit Accumulators(Program& program) : program_(program), first_(program.states.size()) {}

  StateId of(StateId parameter) {
    const auto [entry, is_new] = known_.try_emplace(parameter, StateId::none());
    if (is_new) {
      const State& state = program_.states[parameter.index()];
      State accumulator{.name = state.name + ".grad", .type = state.type, .role = Role::gradient, .owner = parameter};
      entry->second = StateId(program_.states.size());
      program_.states.push_back(std::move(accumulator));
    }
    return entry->second;
  }

  // Accumulators start at zero.
  void clear_in_init() const {
    Section* init = program_.find_section(SectionKind::init);
    if (init == nullptr) return;
    SectionBuilder builder(program_.states, *init);
    for (std::size_t i = first_; i < program_.states.size(); ++i) {
      builder.emit(ops::fill, {builder.read(StateId(i))}, {{"value", 0.0}},
                   {.layer = program_.states[i].name, .role = Role::gradient, .phase = Phase::init, .writes = {StateId(i)}});
    }
  }

 private:
  Program& program_;
  std::size_t first_;
  std::unordered_map<StateId, StateId> known_;  // parameter -> its gradient
};

// Of one section `forward`.
class Differentiator {
 public:
  Differentiator(Program& program, Section forward, Accumulators& accumulators)
      : program_(program),
        forward_(std::move(forward)),
        flow_(gradient_flow(program.states, forward_)),
        accumulators_(accumulators) {
    for (Node& node : forward_.nodes) {
      recipes_.push_back(static_cast<std::size_t>(node.attributes.integer_or(kRecipe, 0)));
      node.attributes.erase(kRecipe);
    }
  }

  Section build_micro() {
    // Values keep their ids, so forward nodes are copied as they are.
    Section micro{.kind = SectionKind::micro, .values = forward_.values, .nodes = {}, .shape = forward_.shape};
    SectionBuilder builder(program_.states, micro);
    extras_.assign(forward_.nodes.size(), ValueId::none());
    for (std::size_t i = 0; i < forward_.nodes.size(); ++i) {
      Node node = forward_.nodes[i];
      for (ValueId& input : node.inputs) input = made_instead(input);
      if (makes_outputs(i)) {
        differentiate(builder, i);
        continue;
      }
      micro.nodes.push_back(node);
      if (flow_.node_active[i] && recipe_of(i).make_extra != nullptr) extras_[i] = recipe_of(i).make_extra(builder, node);
    }
    for (std::size_t i = forward_.nodes.size(); i-- > 0;) {
      if (flow_.node_active[i] && !makes_outputs(i)) differentiate(builder, i);
    }
    return micro;
  }

  Section build_eval() const {
    std::unordered_map<ValueId, ValueId> substitutes;
    for (const auto& [trained, evaluated] : forward_.in_evaluation) substitutes.emplace(trained, evaluated);
    const auto read_instead = [&](ValueId id) {
      for (auto found = substitutes.find(id); found != substitutes.end(); found = substitutes.find(id)) id = found->second;
      return id;
    };
    Section eval{.kind = SectionKind::eval, .values = forward_.values, .nodes = {}, .shape = forward_.shape};
    for (const Node& node : forward_.nodes) {
      const Value& first = eval.value(node.outputs.front());
      if (first.is_state() && first.state != program_.metrics) continue;  // running statistics do not change in evaluation
      Node copy = node;
      for (ValueId& input : copy.inputs) input = read_instead(input);
      if (copy.op->for_evaluation != nullptr) copy.op->for_evaluation(copy.attributes);
      eval.nodes.push_back(std::move(copy));
    }
    return eval;
  }

 private:
  const GradientRecipe& recipe_of(std::size_t node) const {
    const auto& recipes = forward_.nodes[node].op->gradients;
    SNUG_CHECK(recipes_[node] < recipes.size(), "{} has no recipe {}", forward_.nodes[node].op->name, recipes_[node]);
    return recipes[recipes_[node]];
  }

  // Of a loss alone: whatever else stands behind the node would have to be differentiated before it.
  bool makes_outputs(std::size_t node) const {
    if (!flow_.node_active[node] || !recipe_of(node).makes_outputs) return false;
    SNUG_CHECK(forward_.nodes[node].op->loss != nullptr, "{} is no loss; its backward cannot make its outputs",
               forward_.nodes[node].op->name);
    return true;
  }

  // What stands for a forward value that a backward node made.
  ValueId made_instead(ValueId forward) const {
    const auto found = made_instead_.find(forward);
    return found == made_instead_.end() ? forward : found->second;
  }

  void differentiate(SectionBuilder& builder, std::size_t index) {
    const Node& node = forward_.nodes[index];
    std::vector<ValueId> output_gradients;
    bool any = node.op->loss != nullptr;
    for (const ValueId output : node.outputs) {
      const auto found = gradients_.find(output);
      output_gradients.push_back(found == gradients_.end() ? ValueId::none() : found->second);
      any = any || found != gradients_.end();
    }
    if (!any) return;
    std::vector<bool> wanted;
    for (const ValueId input : node.inputs) wanted.push_back(flow_.reached[input.index()]);

    GradientContext context(builder, node, recipe_of(index), std::move(output_gradients), wanted, extras_[index]);
    recipe_of(index).build(context);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (context.made_outputs()[i].valid()) made_instead_.emplace(node.outputs[i], context.made_outputs()[i]);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!wanted[i]) continue;
      SNUG_CHECK(context.gradients()[i].valid(), "recipe '{}' of {} gives no gradient for input {}", recipe_of(index).name,
                 node.op->name, i);
      accumulate(builder, node, node.inputs[i], context.gradients()[i]);
    }
  }

  // Adds one reader's contribution to the gradient of `value`.
  void accumulate(SectionBuilder& builder, const Node& node, ValueId value, ValueId gradient) {
    const Value& target = builder.value(value);
    if (target.is_state()) {
      const StateId accumulator = accumulators_.of(target.state);
      if (!builder.value(gradient).is_state()) {
        Value& summand = builder.section().value(gradient);
        summand.role = Role::gradient;
        summand.type.layout = target.type.layout;  // gradients are summed in the weight's layout, which may be a library's
      }
      builder.emit(ops::add, {builder.read(accumulator), gradient}, {},
                   {.layer = node.layer, .role = Role::gradient, .phase = Phase::backward, .writes = {accumulator}});
      move_last_node_behind_maker(builder.section(), gradient, accumulator);
      return;
    }
    const auto [entry, is_first] = gradients_.try_emplace(value, gradient);
    if (is_first) return;
    entry->second = builder
                        .emit(ops::add, {entry->second, gradient}, {},
                              {.name = "d." + node.layer + ".sum",
                               .layer = node.layer,
                               .role = Role::activation_gradient,
                               .phase = Phase::backward})
                        .front();
  }

  // A weight's new gradient is added at once: it need not live through the kernel that makes the input's gradient.
  static void move_last_node_behind_maker(Section& section, ValueId summand, StateId accumulator) {
    const auto makes_summand = [&](ValueId id) { return id == summand; };
    const auto is_accumulator = [&](ValueId id) { return section.value(id).state == accumulator; };
    auto place = section.nodes.end() - 1;
    while (place != section.nodes.begin()) {
      const Node& before = *(place - 1);
      if (std::any_of(before.outputs.begin(), before.outputs.end(), makes_summand)) break;
      if (std::any_of(before.outputs.begin(), before.outputs.end(), is_accumulator)) break;
      --place;
    }
    std::rotate(place, section.nodes.end() - 1, section.nodes.end());
  }

  Program& program_;
  Section forward_;
  const GradientFlow flow_;
  Accumulators& accumulators_;
  std::vector<std::size_t> recipes_;                   // by forward node: which of its op's
  std::vector<ValueId> extras_;                        // extra values that recipes keep, by forward node
  std::unordered_map<ValueId, ValueId> made_instead_;  // by forward value: what GradientRecipe::makes_outputs made of it
  std::unordered_map<ValueId, ValueId> gradients_;     // of transient forward values, summed so far
};

}  // namespace

Program differentiate(Program model, std::int64_t batch) {
  if (batch != 0 && batch < model.microbatch)
    throw_user_error("a batch of {} is smaller than the microbatch of {}", batch, model.microbatch);
  if (batch != 0) model.batch = batch;
  Accumulators accumulators(model);
  std::vector<Section> evals;
  for (std::size_t i = 0; i < model.sections.size(); ++i) {
    if (model.sections[i].kind != SectionKind::forward) continue;
    Differentiator differentiator(model, std::move(model.sections[i]), accumulators);
    model.sections[i] = differentiator.build_micro();
    evals.push_back(differentiator.build_eval());
  }
  SNUG_CHECK(!evals.empty(), "'{}' has nothing to differentiate", model.name);
  accumulators.clear_in_init();
  for (Section& eval : evals) model.sections.push_back(std::move(eval));
  return model;
}

}  // namespace snug
