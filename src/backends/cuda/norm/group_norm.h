// Group norm of channels-last images: one block per example and group. T: float, __half or __nv_bfloat16; statistics and
// parameters are float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/norm/columns.h"

namespace snug::backends::cuda::launch {

struct GroupShape {
  std::uint32_t batch, pixels, channels, groups;
};

// y may lie in the bytes of x.
template <typename T>
void group_norm(cudaStream_t stream, const T* x, const float* weight, const float* bias, T* y, float* mean, float* variance,
                float epsilon, const GroupShape& shape);

template <typename T>
struct GroupGradOperands {
  const T *dy, *x;
  const float *mean, *variance, *weight;  // [batch, groups] twice, [channels]
  T* dx;                                  // may lie in the bytes of dy or x
  const T* addend;
};
template <typename T>
void group_norm_grad_input(cudaStream_t stream, const GroupGradOperands<T>& operands, float epsilon, const GroupShape& shape);

template <typename T>
void group_norm_grad_parameters(cudaStream_t stream, const T* dy, const T* x, const float* mean, const float* variance,
                                float* weight_gradient, float* bias_gradient, float epsilon, const GroupShape& shape,
                                const ColumnSums& sums, float* partial);

}  // namespace snug::backends::cuda::launch
