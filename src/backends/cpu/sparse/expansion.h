// Conversion between the sparse store and a dense weight in one of oneDNN's layouts, which lies in a kernel's workspace while it
// runs.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/onednn/onednn.h"
#include "backends/sparse_store.h"

namespace snug::backends::cpu {

// A tensor of the store, and the part of it that is dense at a time.
struct SparsePart {
  ops::SparseSlot slot;
  const std::byte* columns;
  const std::byte* rows;            // of the whole store
  std::int64_t row_begin, row_end;  // output channels
};
SparsePart whole_part(const ops::SparseSlot& slot, const Operand& columns, const Operand& rows);

// The tables of a part: made at every run, since the workspace is shared.
Bytes position_tables_size(const SparsePart& part);

// Writes the part's values into `dense`, which has the layout `descriptor` of a weight of the part's size; zeros elsewhere.
std::unique_ptr<BoundKernel> expand(const SparsePart& part, const std::byte* values, const dnnl::memory::desc& descriptor,
                                    std::byte* dense, std::byte* tables, int threads);
// The same for a whole tensor, with values of any type.
std::unique_ptr<BoundKernel> expand_as_floats(const SparsePart& part, const Operand& values, const dnnl::memory::desc& descriptor,
                                              float* dense, std::byte* tables, int threads);
// Adds the dense gradient of the part (floats) at its nonzeros to `sum`, rounded to its type before the addition.
std::unique_ptr<BoundKernel> gather_gradient(const SparsePart& part, const dnnl::memory::desc& descriptor, const std::byte* dense,
                                             DType dtype, std::byte* sum, std::byte* tables, int threads);

}  // namespace snug::backends::cpu
