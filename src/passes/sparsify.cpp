#include "passes/sparsify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ops/sparse.h"

namespace snug {

namespace {

constexpr std::array<std::string_view, 3> kMethods{"fixed", "set", "dsr"};

// The convolutions whose weights become sparse, in order.
std::vector<std::size_t> eligible_nodes(const Graph& graph) {
  const Section& forward = graph.forward;
  std::vector<int> readers(graph.states.size(), 0);
  for (const Node& node : forward.nodes) {
    for (const ValueId id : node.inputs) {
      if (forward.value(id).is_state()) ++readers[forward.value(id).state.index()];
    }
  }
  std::vector<std::size_t> nodes;
  bool first = true;
  for (std::size_t i = 0; i < forward.nodes.size(); ++i) {
    const Node& node = forward.nodes[i];
    if (ops::sparse_form(*node.op) == nullptr) continue;
    if (std::exchange(first, false)) continue;
    const Value& weight = forward.value(node.inputs[1]);
    if (!weight.is_state() || readers[weight.state.index()] != 1 || node.attributes.integer("groups") != 1) continue;
    const Initializer::Kind begins = graph.initializers[weight.state.index()].kind;
    if (begins != Initializer::Kind::normal && begins != Initializer::Kind::uniform) continue;
    if (graph.states[weight.state.index()].trainable) nodes.push_back(i);
  }
  return nodes;
}

// Nonzeros of each tensor: the same share of all, round(share * all) together, by largest remainders.
void share_nonzeros(std::vector<SparseTensor>& tensors, double share) {
  std::int64_t elements = 0;
  for (const SparseTensor& tensor : tensors) elements += tensor.shape.elements();
  std::int64_t left = std::max<std::int64_t>(1, std::llround(share * static_cast<double>(elements)));
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> remainder;
  for (SparseTensor& tensor : tensors) {
    const double exact = share * static_cast<double>(tensor.shape.elements());
    tensor.nonzeros = static_cast<std::int64_t>(exact);
    remainder.push_back(exact - static_cast<double>(tensor.nonzeros));
    left -= tensor.nonzeros;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size()) {
    SparseTensor& tensor = tensors[order[i]];
    if (tensor.nonzeros == tensor.shape.elements()) continue;
    ++tensor.nonzeros;
    --left;
  }
}

class Sparsifier {
 public:
  Sparsifier(Graph& graph, const SparseOptions& options)
      : graph_(graph), options_(options), store_(graph.sparse), nodes_(eligible_nodes(graph)) {}

  void run() {
    if (nodes_.empty()) {
      throw_user_error("'{}' has no convolution that could be sparse: all but the first, with trained weights of its own",
                       graph_.name);
    }
    describe_tensors();
    const std::vector<StateId> moved = replace_states();
    for (Value& value : graph_.forward.values) {
      if (value.is_state()) value.state = moved[value.state.index()];
    }
    graph_.scalars = moved[graph_.scalars.index()];
    graph_.metrics = moved[graph_.metrics.index()];
    add_store();
    for (std::size_t t = 0; t < nodes_.size(); ++t) rewrite(graph_.forward.nodes[nodes_[t]], store_.tensors[t]);
  }

 private:
  void describe_tensors() {
    std::int64_t row = 0;
    std::int64_t widest = 1;
    for (const std::size_t index : nodes_) {
      const StateId id = graph_.forward.value(graph_.forward.nodes[index].inputs[1]).state;
      const State& state = graph_.states[id.index()];
      dtype_ = state.type.dtype;
      store_.tensors.push_back({.name = state.name,
                                .shape = state.type.shape,
                                .first_row = row,
                                .initializer = graph_.initializers[id.index()],
                                .key = static_cast<std::int64_t>(id.index())});
      row += state.type.shape[0];
      widest = std::max(widest, state.type.elements() / state.type.shape[0]);
    }
    rows_ = row;
    store_.bits = ops::sparse_index_bits(widest);
    share_nonzeros(store_.tensors, options_.nonzero);
  }

  // Takes the dense weights out; where each other state is now.
  std::vector<StateId> replace_states() {
    std::vector<bool> goes(graph_.states.size(), false);
    for (const SparseTensor& tensor : store_.tensors) goes[static_cast<std::size_t>(tensor.key)] = true;
    std::vector<StateId> moved;
    std::vector<State> states;
    std::vector<Initializer> initializers;
    for (std::size_t i = 0; i < graph_.states.size(); ++i) {
      moved.push_back(goes[i] ? StateId::none() : StateId(states.size()));
      if (goes[i]) continue;
      states.push_back(std::move(graph_.states[i]));
      initializers.push_back(graph_.initializers[i]);
      // What is not sparse begins as in the dense model.
      if (initializers.back().key < 0) initializers.back().key = static_cast<std::int64_t>(i);
    }
    graph_.states = std::move(states);
    graph_.initializers = std::move(initializers);
    return moved;
  }

  StateId add_state(const std::string& name, const Type& type, Role role, Initializer initializer = {}) {
    const std::string full = "sparse." + name;
    for (const State& state : graph_.states) {
      if (state.name == full) throw_user_error("a part of the model is called '{}', which sparse weights need", full);
    }
    graph_.states.push_back({.name = full, .type = type, .role = role, .trainable = role == Role::parameter});
    graph_.initializers.push_back(initializer);
    return StateId(graph_.states.size() - 1);
  }

  void add_store() {
    std::int64_t nonzeros = 0;
    std::int64_t elements = 0;
    for (const SparseTensor& tensor : store_.tensors) {
      nonzeros += tensor.nonzeros;
      elements += tensor.shape.elements();
    }
    store_.weight = add_state("weight", {.dtype = dtype_, .shape = {nonzeros}}, Role::parameter);
    store_.columns = add_state("columns", ops::sparse_columns_type(nonzeros, store_.bits), Role::statistic);
    store_.rows = add_state("rows", ops::sparse_rows_type(rows_), Role::statistic);
    store_.method = options_.method;
    if (store_.method == SparseStore::Method::fixed) return;
    using Kind = Initializer::Kind;
    store_.threshold = add_state("threshold", ops::sparse_threshold_type(), Role::statistic,
                                 {.kind = Kind::constant, .amount = options_.threshold});
    store_.pruned = add_state("pruned", ops::sparse_threshold_type(), Role::scalar, {.kind = Kind::constant, .amount = 0});
    store_.target = std::clamp<std::int64_t>(std::llround(options_.rewire_fraction * static_cast<double>(elements)), 0, nonzeros);
  }

  void rewrite(Node& node, const SparseTensor& tensor) {
    std::vector<ValueId> inputs{node.inputs[0], read(store_.weight), read(store_.columns), read(store_.rows)};
    if (node.inputs.size() == 3) inputs.push_back(node.inputs[2]);
    // The value of the dense weight stays in the list, unread and of no state.
    node.inputs = std::move(inputs);
    node.op = ops::sparse_form(*node.op);
    ops::set_slot(node.attributes, {.first_row = tensor.first_row, .shape = tensor.shape, .bits = store_.bits});
  }

  ValueId read(StateId id) {
    for (std::size_t i = 0; i < graph_.forward.values.size(); ++i) {
      if (graph_.forward.values[i].state == id) return ValueId(i);
    }
    const State& state = graph_.states[id.index()];
    graph_.forward.values.push_back({.name = state.name, .type = state.type, .role = state.role, .state = id});
    return ValueId(graph_.forward.values.size() - 1);
  }

  Graph& graph_;
  const SparseOptions& options_;
  SparseStore& store_;
  std::vector<std::size_t> nodes_;
  DType dtype_ = DType::f32;
  std::int64_t rows_ = 0;
};

}  // namespace

std::string_view name_of(SparseStore::Method method) { return kMethods[static_cast<std::size_t>(method)]; }

std::optional<SparseStore::Method> parse_sparse_method(std::string_view name) {
  const auto found = std::find(kMethods.begin(), kMethods.end(), name);
  if (found == kMethods.end()) return std::nullopt;
  return static_cast<SparseStore::Method>(found - kMethods.begin());
}

bool can_sparsify(const Graph& graph) { return !eligible_nodes(graph).empty(); }

Graph sparsify(Graph graph, const SparseOptions& options) {
  if (!(options.nonzero > 0 && options.nonzero <= 1))
    throw_user_error("a share of {} nonzero weights is not possible; use a number above 0, up to 1", options.nonzero);
  if (options.nonzero < 1) Sparsifier(graph, options).run();
  return graph;
}

}  // namespace snug
