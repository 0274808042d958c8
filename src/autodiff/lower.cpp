#include "autodiff/lower.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "autodiff/gradient_flow.h"
#include "base/error.h"
#include "ir/builder.h"
#include "ir/verify.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/quantised_momentum.h"
#include "ops/sgd.h"
#include "ops/sparse.h"

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
    if (!(options.sgd.clip_norm >= 0)) {
      throw_user_error("gradients cannot be clipped to {}; use a number above 0, or 0 for no clipping", options.sgd.clip_norm);
    }
    if (options.sgd.momentum_bits != 32 && options.sgd.momentum_bits != 8)
      throw_user_error("a momentum of {} bits is not possible; use 8, or 32 for a plain one", options.sgd.momentum_bits);
    if (options.sgd.momentum_bits == 8 && options.sgd.momentum <= 0)
      throw_user_error("a momentum in 8 bits needs a momentum above 0; set one or leave out --momentum-bits");
    if (program_.batch < program_.microbatch) {
      throw_user_error("a batch of {} is smaller than the microbatch of {}", program_.batch, program_.microbatch);
    }
  }

  Program run() {
    Section micro = build_micro();
    Section update = build_update();  // adds the optimizer's states, which `init` clears
    Section init = build_init();
    Section eval = build_eval();
    program_.sections = {std::move(init), std::move(micro), std::move(update)};
    if (graph_.sparse.threshold.valid()) program_.sections.push_back(build_rewire());
    program_.sections.push_back(std::move(eval));
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

  StateId add_state(const std::string& name, const Type& type, Role role) {
    program_.states.push_back({.name = name, .type = type, .role = role});
    return StateId(program_.states.size() - 1);
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
    bool any = node.op->is_loss;
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
      entry->second = add_state(state.name + ".grad", state.type, Role::gradient);
    }
    return entry->second;
  }

  // The length of all gradients together and the factor that cuts it down, in the state that the host reads; none() when nothing
  // has a gradient.
  ValueId measure_gradients(SectionBuilder& builder) {
    ValueId sum = ValueId::none();
    for (std::size_t i = 0; i < graph_.states.size(); ++i) {
      const auto found = accumulators_.find(StateId(i));
      if (found == accumulators_.end()) continue;
      const std::string& name = program_.states[i].name;
      std::vector<ValueId> inputs{builder.read(found->second)};
      if (sum.valid()) inputs.push_back(sum);
      sum = builder
                .emit(ops::sum_of_squares, std::move(inputs), {},
                      {.name = name + ".squares", .layer = name, .role = Role::scalar, .phase = Phase::update})
                .front();
    }
    if (!sum.valid()) return sum;
    program_.gradient_norm = add_state("gradient_norm", ops::gradient_norm_type(), Role::scalar);
    Attributes attributes;
    if (options_.sgd.finds_overflow) attributes.set("finds_overflow", std::int64_t{1});
    return builder
        .emit(ops::clip_factor, {sum, builder.read(graph_.scalars)}, attributes,
              {.layer = "gradient_norm", .role = Role::scalar, .phase = Phase::update, .writes = {program_.gradient_norm}})
        .front();
  }

  bool keeps_codes(const Type& parameter) const {
    return options_.sgd.momentum_bits == 8 && parameter.storage.kind == Storage::Kind::dense &&
           parameter.elements() >= ops::kLeastQuantisedElements;
  }

  // Codes and scales follow the order of the weight's elements in memory. It is part of their names, so that a snapshot of
  // another order is not taken for this one.
  static std::string order_of(const Layout& layout) {
    if (layout.kind == Layout::Kind::row_major) return {};
    std::string order = layout.kind == Layout::Kind::channels_last ? "channels_last" : layout.opaque_name;
    std::replace_if(
        order.begin(), order.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return "." + order;
  }

  Section build_update() {
    Section update{.kind = SectionKind::update, .values = {}, .nodes = {}};
    SectionBuilder builder(program_.states, update);
    const SgdOptions& sgd = options_.sgd;
    const Attributes attributes{
        {"momentum", sgd.momentum}, {"weight_decay", sgd.weight_decay}, {"nesterov", std::int64_t{sgd.nesterov ? 1 : 0}}};
    const ValueId norm = sgd.clip_norm > 0 || sgd.finds_overflow ? measure_gradients(builder) : ValueId::none();
    for (std::size_t i = 0; i < graph_.states.size(); ++i) {
      const auto found = accumulators_.find(StateId(i));
      if (found == accumulators_.end()) continue;
      const std::string name = program_.states[i].name;
      std::vector<ValueId> inputs{builder.read(StateId(i)), builder.read(found->second), builder.read(graph_.scalars)};
      std::vector<StateId> writes{StateId(i), found->second};
      const bool quantised = keeps_codes(program_.states[i].type);
      if (quantised) {
        const std::array<Type, 2> types = ops::quantised_momentum_types(program_.states[i].type);
        const std::string order = order_of(program_.states[i].type.layout);
        writes.push_back(add_state(fmt::format("{}.momentum.codes{}", name, order), types[0], Role::optimizer));
        writes.push_back(add_state(fmt::format("{}.momentum.scales{}", name, order), types[1], Role::optimizer));
      } else if (sgd.momentum > 0) {
        writes.push_back(add_state(name + ".momentum", program_.states[i].type, Role::optimizer));
      }
      for (std::size_t k = 2; k < writes.size(); ++k) inputs.push_back(builder.read(writes[k]));
      if (norm.valid()) inputs.push_back(norm);
      Attributes own = attributes;
      if (sgd.stochastic_rounding && bits_per_element(program_.states[i].type.dtype) == 16) {
        own.set("stochastic", std::int64_t{1});
        own.set("key", static_cast<std::int64_t>(i));
      }
      builder.emit(quantised ? ops::sgd_quantised : ops::sgd, std::move(inputs), own,
                   {.layer = name, .role = Role::parameter, .phase = Phase::update, .writes = writes});
    }
    return update;
  }

  Section build_init() {
    Section init{.kind = SectionKind::init, .values = {}, .nodes = {}};
    SectionBuilder builder(program_.states, init);
    if (!graph_.sparse.tensors.empty()) init_sparse(builder);
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

  Attributes sparse_grid() const {
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;
    for (const SparseTensor& tensor : graph_.sparse.tensors) {
      rows.push_back(tensor.shape[0]);
      columns.push_back(tensor.shape.elements() / tensor.shape[0]);
    }
    return {{"tensor_rows", rows}, {"tensor_columns", columns}, {"bits", std::int64_t{graph_.sparse.bits}}};
  }

  // A pattern, then each tensor's values at the places it gave.
  void init_sparse(SectionBuilder& builder) const {
    const SparseStore& sparse = graph_.sparse;
    Attributes attributes = sparse_grid();
    std::vector<std::int64_t> nonzeros;
    for (const SparseTensor& tensor : sparse.tensors) nonzeros.push_back(tensor.nonzeros);
    attributes.set("tensor_nonzeros", nonzeros);
    builder.emit(ops::init_sparse_pattern,
                 {builder.read(sparse.columns), builder.read(sparse.rows), builder.read(graph_.scalars)}, attributes,
                 {.layer = "sparse", .role = Role::statistic, .phase = Phase::init, .writes = {sparse.columns, sparse.rows}});
    for (const SparseTensor& tensor : sparse.tensors) {
      SNUG_CHECK(tensor.initializer.kind == Initializer::Kind::normal || tensor.initializer.kind == Initializer::Kind::uniform,
                 "the weight '{}' begins with no random values", tensor.name);
      const std::int64_t uniform = tensor.initializer.kind == Initializer::Kind::uniform ? 1 : 0;
      Attributes values{{"spread", tensor.initializer.amount}, {"uniform", uniform}, {"key", tensor.key}};
      ops::set_slot(values, {.first_row = tensor.first_row, .shape = tensor.shape, .bits = sparse.bits});
      builder.emit(
          ops::init_sparse,
          {builder.read(sparse.weight), builder.read(sparse.columns), builder.read(sparse.rows), builder.read(graph_.scalars)},
          values, {.layer = tensor.name, .role = Role::parameter, .phase = Phase::init, .writes = {sparse.weight}});
    }
  }

  Section build_rewire() {
    const SparseStore& sparse = graph_.sparse;
    Section section{.kind = SectionKind::rewire, .values = {}, .nodes = {}};
    SectionBuilder builder(program_.states, section);
    Attributes attributes = sparse_grid();
    attributes.set("target", sparse.target);
    attributes.set("per_tensor", std::int64_t{sparse.method == SparseStore::Method::set ? 1 : 0});
    std::vector<StateId> writes{sparse.weight, sparse.columns, sparse.rows, sparse.threshold, sparse.pruned};
    std::vector<ValueId> inputs{builder.read(sparse.weight), builder.read(sparse.columns), builder.read(sparse.rows),
                                builder.read(sparse.threshold), builder.read(graph_.scalars)};
    const std::string momentum_name = program_.state(sparse.weight).name + ".momentum";
    if (const StateId momentum = program_.find_state(momentum_name); momentum.valid()) {
      writes.push_back(momentum);
      inputs.push_back(builder.read(momentum));
    }
    builder.emit(ops::rewire, std::move(inputs), std::move(attributes),
                 {.layer = "sparse", .role = Role::parameter, .phase = Phase::update, .writes = std::move(writes)});
    // Of a momentum in codes it is enough to clear the scales.
    if (const StateId scales = program_.find_state(momentum_name + ".scales"); scales.valid()) {
      builder.emit(ops::fill, {builder.read(scales)}, {{"value", 0.0}},
                   {.layer = "sparse", .role = Role::optimizer, .phase = Phase::update, .writes = {scales}});
    }
    return section;
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
