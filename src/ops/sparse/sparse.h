// Sparse weights. All sparse tensors of a model lie in one store, because rewiring changes the share of each while the total
// number of nonzeros stays:
//
//   sparse.weight    the values, row after row of tensor after tensor; its gradient and momentum have the same order
//   sparse.columns   the column of every value, `bits` bits each, bit-packed; ascending within a row
//   sparse.rows      i32: where each row's values begin, over all tensors, and one past the last
//
// A row is an output channel; a column is the index of a weight of that channel in channels-last order: (kh, kw, ci). A tensor is
// identified by its first row and its shape: kernels read the rest from `rows`, so a program does not change when a pattern does.
// All columns have as many bits as the widest tensor's need: a pattern may put all values there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/program.h"
#include "ops/conv2d.h"

namespace snug::ops {

// Bits of a column's index.
int sparse_index_bits(std::int64_t columns);

// Room for packed columns, and the few bytes after them that a reader of whole words may touch.
Type sparse_columns_type(std::int64_t nonzeros, int bits);
Type sparse_rows_type(std::int64_t rows);
Type sparse_threshold_type();

// Where one tensor lies in the store.
struct SparseSlot {
  std::int64_t first_row = 0;
  Shape shape;  // O, I, kh, kw
  int bits = 0;

  // From the attributes first_row, weight_shape, bits; UserError when they are not valid.
  static SparseSlot from(const Attributes& attributes);
  std::int64_t rows() const { return shape[0]; }
  std::int64_t columns() const { return shape[1] * shape[2] * shape[3]; }
  // The row-major element of the dense tensor.
  std::int64_t logical_element(std::int64_t row, std::int64_t column) const {
    const std::int64_t taps = shape[2] * shape[3];
    return (row * shape[1] + column % shape[1]) * taps + column / shape[1];
  }
};

// The attributes under which `SparseSlot::from` finds it.
void set_slot(Attributes& attributes, const SparseSlot& slot);

// All tensors of a store, from the attributes of init_sparse_pattern and rewire.
struct SparseGrid {
  std::vector<std::int64_t> rows, columns;  // by tensor
  int bits = 0;

  static SparseGrid from(const Attributes& attributes);
  std::int64_t all_rows() const;
  std::int64_t elements(std::size_t tensor) const { return rows[tensor] * columns[tensor]; }
};

// The distribution of a state's initial values; init_sparse draws the same numbers.
struct RandomValues {
  double spread = 0;  // the standard deviation or the bound
  bool uniform = false;
  std::int64_t key = 0;
};
std::optional<RandomValues> random_values_of(const Node& node);

// The op that does the same with a sparse weight: op(x, values, columns, rows, bias?). nullptr: there is none.
const OpDef* sparse_form(const OpDef& op);

// The state with the values of all sparse tensors; none: the program has none.
StateId sparse_store(const Program& program);

// A sparse tensor of a program, by the name of the dense weight that it replaces.
struct NamedSlot {
  std::string name;
  SparseSlot slot;
};
// In the order of the store; empty where the program has none.
std::vector<NamedSlot> sparse_tensors(const Program& program);

}  // namespace snug::ops
