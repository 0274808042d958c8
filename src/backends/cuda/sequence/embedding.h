// Rows of a table, and the sum of gradients into them. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

struct TableShape {
  std::uint32_t indices, rows, columns;  // R, V, D
};

template <typename T>
void embedding(cudaStream_t stream, const std::int32_t* indices, const T* table, T* y, const TableShape& shape);

// Room for the indices sorted by table row, and within a row by position.
inline std::size_t embedding_grad_scratch(const TableShape& shape) {
  return (2 * std::size_t{shape.rows} + 1 + 2 * std::size_t{shape.indices}) * sizeof(std::uint32_t);
}
template <typename T>
void embedding_grad(cudaStream_t stream, const std::int32_t* indices, const T* dy, T* gradient, const T* addend,
                    const TableShape& shape, void* scratch);

}  // namespace snug::backends::cuda::launch
