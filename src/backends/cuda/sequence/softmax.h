// Softmax of rows [rows, columns] and its gradient, a warp per row. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

struct SoftmaxShape {
  std::uint32_t rows, columns;
};

// y may lie in the bytes of x.
template <typename T>
void softmax(cudaStream_t stream, const T* x, T* y, const SoftmaxShape& shape);
// dx may lie in the bytes of dy or y.
template <typename T>
void softmax_grad(cudaStream_t stream, const T* dy, const T* y, T* dx, const SoftmaxShape& shape);

}  // namespace snug::backends::cuda::launch
