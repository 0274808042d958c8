// Lightweight and dynamic convolutions of rows [examples * length, columns] and their gradients. T: float, __half or
// __nv_bfloat16.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

struct DynamicConvShape {
  std::uint32_t rows, length, columns;
  std::uint32_t heads, head_size, kernel;
  std::uint32_t left;            // how far before its own position a row's first tap lies
  std::uint32_t weights_of_row;  // weights from one row's to the next row's; 0: all rows share them
};

// The gradient of weights that all rows share: a sum over chunks of rows, then over the chunks. They depend on the shape alone.
struct DynamicConvChunks {
  std::uint32_t count, rows;

  static constexpr std::uint32_t kLeastRows = 64, kMostBlocks = 1024;

  static DynamicConvChunks of(const DynamicConvShape& shape) {
    const std::uint32_t most = std::max(kMostBlocks / shape.heads, 1U);
    const std::uint32_t rows = std::max((shape.rows + most - 1) / most, kLeastRows);
    return {.count = (shape.rows + rows - 1) / rows, .rows = rows};
  }
  // A sum for every chunk and weight, in float.
  std::int64_t workspace_bytes(const DynamicConvShape& shape) const {
    return std::int64_t{count} * shape.heads * shape.kernel * static_cast<std::int64_t>(sizeof(float));
  }
};

template <typename T>
void dynamic_conv(cudaStream_t stream, const T* x, const T* weight, T* y, const DynamicConvShape& shape);
template <typename T>
void dynamic_conv_grad_input(cudaStream_t stream, const T* dy, const T* weight, T* dx, const T* addend,
                             const DynamicConvShape& shape);
// Of weights of each row's own.
template <typename T>
void dynamic_conv_grad_weight(cudaStream_t stream, const T* dy, const T* x, T* dweight, const T* addend,
                              const DynamicConvShape& shape);
template <typename T>
void lightweight_conv_grad_weight(cudaStream_t stream, const T* dy, const T* x, T* dweight, const T* addend, float* partial,
                                  const DynamicConvShape& shape);

}  // namespace snug::backends::cuda::launch
