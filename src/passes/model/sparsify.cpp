#include "passes/model/sparsify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/section_editor.h"
#include "ops/ops.h"
#include "ops/sparse/sparse.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

constexpr std::array<std::string_view, 3> kMethods{"fixed", "set", "dsr"};

// A weight that becomes sparse.
struct SparseTensor {
  StateId state;
  std::string name;
  Shape shape;             // O, I, kh, kw
  ops::RandomValues init;  // initial values of the dense weight
  std::int64_t first_row = 0;
  std::int64_t nonzeros = 0;  // initially
};

// By state: the random values that `init` gives it.
std::unordered_map<StateId, ops::RandomValues> random_values(const Program& model) {
  std::unordered_map<StateId, ops::RandomValues> values;
  const Section& init = model.section(SectionKind::init);
  for (const Node& node : init.nodes) {
    if (const auto drawn = ops::random_values_of(node)) values.emplace(init.state_of(node.outputs.front()), *drawn);
  }
  return values;
}

// The weights that become sparse, in the order of their convolutions.
std::vector<SparseTensor> eligible_tensors(const Program& model) {
  const Section& forward = model.section(SectionKind::forward);
  std::vector<int> readers(model.states.size(), 0);
  for (const Node& node : forward.nodes) {
    for (const ValueId id : node.inputs) {
      if (forward.value(id).is_state()) ++readers[forward.value(id).state.index()];
    }
  }
  const auto drawn = random_values(model);
  std::vector<SparseTensor> tensors;
  bool first = true;
  for (const Node& node : forward.nodes) {
    if (ops::sparse_form(*node.op) == nullptr) continue;
    if (std::exchange(first, false)) continue;
    const StateId weight = forward.state_of(node.inputs[1]);
    if (!weight.valid() || readers[weight.index()] != 1 || node.attributes.integer("groups") != 1) continue;
    const State& state = model.state(weight);
    const auto begins = drawn.find(weight);
    if (begins == drawn.end() || !state.trainable) continue;
    tensors.push_back({.state = weight, .name = state.name, .shape = state.type.shape, .init = begins->second});
  }
  return tensors;
}

// Nonzeros of each tensor: the same share of each, round(share * all) together, by largest remainders.
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
  Sparsifier(Program& model, double nonzero, const SparseOptions& options)
      : model_(model), nonzero_(nonzero), options_(options), tensors_(eligible_tensors(model)) {}

  void run() {
    if (tensors_.empty()) {
      throw_user_error("'{}' has no convolution that could be sparse: all but the first, with trained weights of its own",
                       model_.name);
    }
    dtype_ = model_.state(tensors_.front().state).type.dtype;
    divide_store();
    add_store();
    for (Section& section : model_.sections) {
      if (section.kind == SectionKind::forward) rewrite(section);
    }
    remove_dense_weights();
    emit_initial_values();
    if (threshold_.valid()) add_rewiring();
  }

 private:
  void divide_store() {
    std::int64_t widest = 1;
    for (SparseTensor& tensor : tensors_) {
      tensor.first_row = std::exchange(rows_in_all_, rows_in_all_ + tensor.shape[0]);
      widest = std::max(widest, tensor.shape.elements() / tensor.shape[0]);
    }
    bits_ = ops::sparse_index_bits(widest);
    share_nonzeros(tensors_, nonzero_);
  }

  StateId add_state(const std::string& name, const Type& type, Role role) {
    const std::string full = "sparse." + name;
    if (model_.find_state(full).valid()) throw_user_error("a part of the model is called '{}', which sparse weights need", full);
    model_.states.push_back({.name = full, .type = type, .role = role, .trainable = role == Role::parameter});
    return StateId(model_.states.size() - 1);
  }

  void add_store() {
    std::int64_t nonzeros = 0;
    std::int64_t elements = 0;
    for (const SparseTensor& tensor : tensors_) {
      nonzeros += tensor.nonzeros;
      elements += tensor.shape.elements();
    }
    weight_ = add_state("weight", {.dtype = dtype_, .shape = {nonzeros}}, Role::parameter);
    columns_ = add_state("columns", ops::sparse_columns_type(nonzeros, bits_), Role::statistic);
    rows_ = add_state("rows", ops::sparse_rows_type(rows_in_all_), Role::statistic);
    if (options_.method == SparseMethod::fixed) return;
    threshold_ = add_state("threshold", ops::sparse_threshold_type(), Role::statistic);
    pruned_ = add_state("pruned", ops::sparse_threshold_type(), Role::scalar);
    target_ = std::clamp<std::int64_t>(std::llround(options_.rewire_fraction * static_cast<double>(elements)), 0, nonzeros);
  }

  void rewrite(Section& forward) {
    SectionBuilder reader(model_.states, forward);
    for (Node& node : forward.nodes) {
      if (ops::sparse_form(*node.op) == nullptr) continue;
      const StateId weight = forward.state_of(node.inputs[1]);
      const auto tensor =
          std::find_if(tensors_.begin(), tensors_.end(), [&](const SparseTensor& one) { return one.state == weight; });
      if (tensor != tensors_.end()) rewrite(node, *tensor, reader);
    }
  }

  void rewrite(Node& node, const SparseTensor& tensor, SectionBuilder& reader) {
    std::vector<ValueId> inputs{node.inputs[0], reader.read(weight_), reader.read(columns_), reader.read(rows_)};
    if (node.inputs.size() == 3) inputs.push_back(node.inputs[2]);
    node.inputs = std::move(inputs);
    node.op = ops::sparse_form(*node.op);
    ops::set_slot(node.attributes, {.first_row = tensor.first_row, .shape = tensor.shape, .bits = bits_});
  }

  void remove_dense_weights() {
    std::unordered_set<StateId> dense;
    for (const SparseTensor& tensor : tensors_) dense.insert(tensor.state);
    const std::vector<StateId> moved = remove_states(model_, dense);
    for (StateId* id : {&weight_, &columns_, &rows_, &threshold_, &pruned_}) {
      if (id->valid()) *id = moved[id->index()];
    }
  }

  Attributes grid() const {
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;
    for (const SparseTensor& tensor : tensors_) {
      rows.push_back(tensor.shape[0]);
      columns.push_back(tensor.shape.elements() / tensor.shape[0]);
    }
    return {{"tensor_rows", rows}, {"tensor_columns", columns}, {"bits", std::int64_t{bits_}}};
  }

  // A pattern, then each tensor's values at the pattern's places.
  void emit_initial_values() {
    SectionEditor editor(model_.states, model_.section(SectionKind::init));
    Attributes attributes = grid();
    std::vector<std::int64_t> nonzeros;
    for (const SparseTensor& tensor : tensors_) nonzeros.push_back(tensor.nonzeros);
    attributes.set("tensor_nonzeros", nonzeros);
    editor.emit_before(0, ops::init_sparse_pattern, {editor.read(columns_), editor.read(rows_), editor.read(model_.scalars)},
                       attributes,
                       {.layer = "sparse", .role = Role::statistic, .phase = Phase::init, .writes = {columns_, rows_}});
    for (const SparseTensor& tensor : tensors_) {
      Attributes values{{"spread", tensor.init.spread}, {"uniform", std::int64_t{tensor.init.uniform}}, {"key", tensor.init.key}};
      ops::set_slot(values, {.first_row = tensor.first_row, .shape = tensor.shape, .bits = bits_});
      editor.emit_before(0, ops::init_sparse,
                         {editor.read(weight_), editor.read(columns_), editor.read(rows_), editor.read(model_.scalars)}, values,
                         {.layer = tensor.name, .role = Role::parameter, .phase = Phase::init, .writes = {weight_}});
    }
    if (threshold_.valid()) {
      const auto fill = [&](StateId id, Role role, double value) {
        editor.emit_before(editor.nodes(), ops::fill, {editor.read(id)}, {{"value", value}},
                           {.layer = model_.state(id).name, .role = role, .phase = Phase::init, .writes = {id}});
      };
      fill(threshold_, Role::statistic, options_.threshold);
      fill(pruned_, Role::scalar, 0);
    }
    editor.apply();
  }

  void add_rewiring() {
    Section section{.kind = SectionKind::periodic, .values = {}, .nodes = {}};
    SectionBuilder builder(model_.states, section);
    Attributes attributes = grid();
    attributes.set("target", target_);
    attributes.set("per_tensor", std::int64_t{options_.method == SparseMethod::set ? 1 : 0});
    builder.emit(ops::rewire,
                 {builder.read(weight_), builder.read(columns_), builder.read(rows_), builder.read(threshold_),
                  builder.read(model_.scalars)},
                 std::move(attributes),
                 {.layer = "sparse",
                  .role = Role::parameter,
                  .phase = Phase::update,
                  .writes = {weight_, columns_, rows_, threshold_, pruned_}});
    model_.sections.push_back(std::move(section));
  }

  Program& model_;
  double nonzero_;
  const SparseOptions& options_;
  std::vector<SparseTensor> tensors_;
  DType dtype_ = DType::f32;
  int bits_ = 0;  // of a column's index
  std::int64_t rows_in_all_ = 0;
  std::int64_t target_ = 0;  // values that a rewiring aims to move
  StateId weight_, columns_, rows_;
  StateId threshold_ = StateId::none(), pruned_ = StateId::none();  // none: the pattern is fixed
};

}  // namespace

std::string_view name_of(SparseMethod method) { return kMethods[static_cast<std::size_t>(method)]; }

std::optional<SparseMethod> parse_sparse_method(std::string_view name) {
  const auto found = std::find(kMethods.begin(), kMethods.end(), name);
  if (found == kMethods.end()) return std::nullopt;
  return static_cast<SparseMethod>(found - kMethods.begin());
}

bool can_sparsify(const Program& model) { return !eligible_tensors(model).empty(); }

Program sparsify(Program model, double nonzero, const SparseOptions& options) {
  if (!(nonzero > 0 && nonzero <= 1))
    throw_user_error("a share of {} nonzero weights is not possible; use a number above 0, up to 1", nonzero);
  if (nonzero < 1) Sparsifier(model, nonzero, options).run();
  return model;
}

}  // namespace snug
