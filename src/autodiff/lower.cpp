#include "autodiff/lower.h"

#include <algorithm>
#include <unordered_map>

#include "autodiff/gradient_flow.h"
#include "base/error.h"
#include "ir/builder.h"
#include "ir/verify.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace snug {

namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options) : graph_(graph), options_(options), flow_(gradient_flow(graph)) {
    program_.name = graph.name;
    program_.microbatch = graph.batch;
    program_.batch = options.batch == 0 ? graph.batch : options.batch;
    program_.states = graph.states;
    program_.scalars = graph.scalars;
    program_.metrics = graph.metrics;
    SNUG_CHECK(options.recipes.empty() || options.recipes.size() == graph.forward.nodes.size(), "{} recipes for {} nodes",
               options.recipes.size(), graph.forward.nodes.size());
    if (program_.batch < program_.microbatch) {
      throw_user_error("a batch of {} is smaller than the microbatch of {}", program_.batch, program_.microbatch);
    }
  }

  Program run() {
    Section micro = build_micro();  // adds the gradients' accumulators, which `init` clears
    Section init = build_init();
    Section eval = build_eval();
    program_.sections = {std::move(init), std::move(micro), std::move(eval)};
    verify(program_, "after differentiation");
    return std::move(program_);
  }

 private:
  const GradientRecipe& recipe_of(std::size_t node) const {
    const auto& recipes = graph_.forward.nodes[node].op->gradients;
    const std::size_t choice = options_.recipes.empty() ? 0 : static_cast<std::size_t>(options_.recipes[node]);
    SNUG_CHECK(choice < recipes.size(), "{} has no recipe {}", graph_.forward.nodes[node].op->name, choice);
    return recipes[choice];
  }

  Section build_micro() {
    // Values keep the ids they have in the graph, so forward nodes are copied as they are.
    Section micro{.kind = SectionKind::micro, .values = graph_.forward.values, .nodes = {}};
    SectionBuilder builder(program_.states, micro);
    extras_.assign(graph_.forward.nodes.size(), ValueId::none());
    for (std::size_t i = 0; i < graph_.forward.nodes.size(); ++i) {
      const Node& node = graph_.forward.nodes[i];
      micro.nodes.push_back(node);
      if (flow_.node_active[i] && recipe_of(i).make_extra != nullptr) extras_[i] = recipe_of(i).make_extra(builder, node);
    }
    for (std::size_t i = graph_.forward.nodes.size(); i-- > 0;) {
      if (flow_.node_active[i]) differentiate(builder, i);
    }
    return micro;
  }

  void differentiate(SectionBuilder& builder, std::size_t index) {
    const Node& node = graph_.forward.nodes[index];
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
      const StateId accumulator = accumulator_of(target.state);
      if (!builder.value(gradient).is_state()) {
        Value& summand = builder.section().value(gradient);
        summand.role = Role::gradient;
        summand.type.layout = target.type.layout;  // a library's layout of the weight is the one its gradient is summed in
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

  // A weight's fresh gradient is added up at once: it need not live through the kernel that makes the data gradient.
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

  StateId accumulator_of(StateId parameter) {
    const auto [entry, is_new] = accumulators_.try_emplace(parameter, StateId::none());
    if (is_new) {
      const State& state = program_.states[parameter.index()];
      State accumulator{.name = state.name + ".grad", .type = state.type, .role = Role::gradient, .owner = parameter};
      entry->second = StateId(program_.states.size());
      program_.states.push_back(std::move(accumulator));
    }
    return entry->second;
  }

  Section build_init() {
    Section init{.kind = SectionKind::init, .values = {}, .nodes = {}};
    SectionBuilder builder(program_.states, init);
    for (std::size_t i = 0; i < program_.states.size(); ++i) {
      const bool of_model = i < graph_.states.size();
      const State& state = program_.states[i];
      // What differentiation added is accumulated into, and begins at zero; so do the metrics. Staging and scalars come from
      // outside.
      const Initializer zero{.kind = Initializer::Kind::constant, .amount = 0};
      const Initializer initializer = of_model && StateId(i) != graph_.metrics ? graph_.initializers[i] : zero;
      const EmitOptions emit{.layer = state.name, .role = state.role, .phase = Phase::init, .writes = {StateId(i)}};
      const std::int64_t key = initializer.key < 0 ? static_cast<std::int64_t>(i) : initializer.key;
      switch (initializer.kind) {
        case Initializer::Kind::none:
          break;
        case Initializer::Kind::constant:
          builder.emit(ops::fill, {builder.read(StateId(i))}, {{"value", initializer.amount}}, emit);
          break;
        case Initializer::Kind::normal:
          builder.emit(ops::init_normal, {builder.read(StateId(i)), builder.read(graph_.scalars)},
                       {{"std", initializer.amount}, {"key", key}}, emit);
          break;
        case Initializer::Kind::uniform:
          builder.emit(ops::init_uniform, {builder.read(StateId(i)), builder.read(graph_.scalars)},
                       {{"bound", initializer.amount}, {"key", key}}, emit);
          break;
      }
    }
    return init;
  }

  Section build_eval() const {
    std::unordered_map<ValueId, ValueId> substitutes(graph_.evaluation_substitutes.begin(), graph_.evaluation_substitutes.end());
    const auto read_instead = [&](ValueId id) {
      for (auto found = substitutes.find(id); found != substitutes.end(); found = substitutes.find(id)) id = found->second;
      return id;
    };
    Section eval{.kind = SectionKind::eval, .values = graph_.forward.values, .nodes = {}};
    for (const Node& node : graph_.forward.nodes) {
      const Value& first = eval.value(node.outputs.front());
      if (first.is_state() && first.state != graph_.metrics) continue;  // running statistics stand still in evaluation
      Node copy = node;
      for (ValueId& input : copy.inputs) input = read_instead(input);
      eval.nodes.push_back(std::move(copy));
    }
    return eval;
  }

  const Graph& graph_;
  const LowerOptions& options_;
  GradientFlow flow_;
  Program program_;
  std::vector<ValueId> extras_;                        // what a recipe keeps of its own, by forward node
  std::unordered_map<ValueId, ValueId> gradients_;     // of transient forward values, summed so far
  std::unordered_map<StateId, StateId> accumulators_;  // parameter -> its gradient
};

}  // namespace

Program lower(const Graph& graph, const LowerOptions& options) { return Lowering(graph, options).run(); }

}  // namespace snug
