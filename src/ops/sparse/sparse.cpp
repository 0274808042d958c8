#include "ops/sparse/sparse.h"

#include <bit>
#include <numeric>

#include "base/error.h"
#include "ops/ops.h"

namespace snug::ops {

namespace {

// Row offsets are i32, and a reader of a column loads 32 bits from any byte on.
constexpr std::int64_t kMostRows = std::int64_t{1} << 30U;
constexpr int kMostBits = 25;
constexpr std::int64_t kReadAhead = 8;

int bits_of(const Attributes& attributes) {
  const std::int64_t bits = attributes.integer("bits");
  if (bits < 1 || bits > kMostBits) throw_user_error("columns of {} bits are not possible; use 1 to {}", bits, kMostBits);
  return static_cast<int>(bits);
}

}  // namespace

int sparse_index_bits(std::int64_t columns) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(columns - 1))));
  if (bits > kMostBits) throw_user_error("a weight with {} columns is too wide to be stored sparse", columns);
  return bits;
}

Type sparse_columns_type(std::int64_t nonzeros, int bits) {
  return {.dtype = DType::u8, .shape = {(nonzeros * bits + 7) / 8 + kReadAhead}};
}

Type sparse_rows_type(std::int64_t rows) { return {.dtype = DType::i32, .shape = {rows + 1}}; }

Type sparse_threshold_type() { return {.dtype = DType::f64, .shape = {1}}; }

SparseSlot SparseSlot::from(const Attributes& attributes) {
  SparseSlot slot{.first_row = attributes.integer("first_row"),
                  .shape = Shape(std::span<const std::int64_t>(attributes.integers("weight_shape"))),
                  .bits = bits_of(attributes)};
  if (slot.shape.rank() != 4) throw_user_error("the weight is {}; it must have 4 dimensions (O,I,H,W)", to_string(slot.shape));
  if (slot.first_row < 0 || slot.first_row > kMostRows || slot.rows() > kMostRows)
    throw_user_error("rows {} and {} more are not possible", slot.first_row, slot.rows());
  if (slot.columns() > std::int64_t{1} << slot.bits) throw_user_error("{} columns do not fit {} bits", slot.columns(), slot.bits);
  return slot;
}

void set_slot(Attributes& attributes, const SparseSlot& slot) {
  attributes.set("first_row", slot.first_row);
  attributes.set("weight_shape", std::vector<std::int64_t>(slot.shape.dims().begin(), slot.shape.dims().end()));
  attributes.set("bits", std::int64_t{slot.bits});
}

SparseGrid SparseGrid::from(const Attributes& attributes) {
  SparseGrid grid{
      .rows = attributes.integers("tensor_rows"), .columns = attributes.integers("tensor_columns"), .bits = bits_of(attributes)};
  if (grid.rows.empty() || grid.rows.size() != grid.columns.size())
    throw_user_error("{} numbers of rows and {} of columns do not go together", grid.rows.size(), grid.columns.size());
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < grid.rows.size(); ++t) {
    if (grid.rows[t] < 1 || grid.columns[t] < 1 || grid.rows[t] > kMostRows || grid.columns[t] > std::int64_t{1} << grid.bits)
      throw_user_error("a tensor of {} rows and {} columns is not possible", grid.rows[t], grid.columns[t]);
    if ((sum += grid.rows[t]) > kMostRows) throw_user_error("{} rows are too many", sum);
  }
  return grid;
}

std::int64_t SparseGrid::all_rows() const { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }

std::optional<RandomValues> random_values_of(const Node& node) {
  const bool uniform = node.op == &init_uniform;
  if (!uniform && node.op != &init_normal) return std::nullopt;
  return RandomValues{
      .spread = node.attributes.real(uniform ? "bound" : "std"), .uniform = uniform, .key = node.attributes.integer("key")};
}

const OpDef* sparse_form(const OpDef& op) { return &op == &conv2d ? &sparse_conv2d : nullptr; }

StateId sparse_store(const Program& program) {
  const Section* init = program.find_section(SectionKind::init);
  if (init == nullptr) return StateId::none();
  for (const Node& node : init->nodes) {
    if (node.op == &init_sparse) return init->state_of(node.outputs.front());
  }
  return StateId::none();
}

std::vector<NamedSlot> sparse_tensors(const Program& program) {
  std::vector<NamedSlot> tensors;
  const Section* init = program.find_section(SectionKind::init);
  if (init == nullptr) return tensors;
  for (const Node& node : init->nodes) {
    if (node.op == &init_sparse) tensors.push_back({.name = node.layer, .slot = SparseSlot::from(node.attributes)});
  }
  return tensors;
}

}  // namespace snug::ops
