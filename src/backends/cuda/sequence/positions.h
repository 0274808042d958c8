// A table of positions that is added to every example, and the sum of gradients over the examples. T: float, __half or
// __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

struct PositionShape {
  std::uint32_t rows, columns;  // R, D
  std::uint32_t length;         // positions of an example
  std::uint32_t positions_of_table;
};

// y may lie in the bytes of x.
template <typename T>
void add_positions(cudaStream_t stream, const T* x, const T* table, T* y, const PositionShape& shape);
// Of the positions that the rows have; one that the table lacks adds nothing.
template <typename T>
void add_positions_at(cudaStream_t stream, const T* x, const T* table, const std::int32_t* positions, T* y,
                      const PositionShape& shape);
template <typename T>
void add_positions_grad(cudaStream_t stream, const T* dy, T* gradient, const T* addend, const PositionShape& shape);

}  // namespace snug::backends::cuda::launch
