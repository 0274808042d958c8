// Operands of kernels on the sparse store, as device code takes them.
#pragma once

#include "backends/cuda/call.h"
#include "backends/cuda/sparse/store.h"
#include "ops/sparse/sparse.h"

namespace snug::backends::cuda {

// The tensor that the call's attributes name; `columns`: the input, before that of the rows.
inline launch::SparsePattern pattern_of(const Call& call, std::size_t columns) {
  const auto slot = ops::SparseSlot::from(call.attributes());
  return {.columns = call.in<std::uint32_t>(columns),
          .rows = call.in<std::int32_t>(columns + 1) + slot.first_row,
          .bits = slot.bits,
          .row_count = static_cast<int>(slot.rows()),
          .column_count = static_cast<int>(slot.columns())};
}

// Copies an input to an output, unless they have the same bytes.
class BringOver {
 public:
  BringOver(const Call& call, std::size_t input, std::size_t output)
      : from_(call.in<std::byte>(input)),
        to_(call.out<std::byte>(output)),
        bytes_(static_cast<std::size_t>(call.output_type(output).bytes().count())) {}

  void operator()(cudaStream_t stream) const {
    if (from_ != to_) SNUG_CUDA_CALL(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDeviceToDevice, stream));
  }

 private:
  const std::byte* from_;
  std::byte* to_;
  std::size_t bytes_;
};

}  // namespace snug::backends::cuda
