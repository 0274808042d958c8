// Batch norm over channels-last rows. T: float, __half or __nv_bfloat16; statistics, parameters and sums are float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/norm/columns.h"
#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

// Mean and variance of a group's channels; `fixed`: one row for all groups.
struct Statistics {
  const float* mean;
  const float* variance;
  float epsilon;
  bool fixed;
};

template <typename T>
void batch_norm_statistics(cudaStream_t stream, const T* x, const Scalars* scalars, float* mean, float* variance,
                           const RowShape& shape, const ColumnSums& sums, float* partial);

template <typename T>
struct ApplyOperands {
  const T* x;
  Statistics statistics;
  const float *weight, *bias;
  T* y;
  bool relu;
};
template <typename T>
void batch_norm_apply(cudaStream_t stream, const ApplyOperands<T>& operands, const RowShape& shape, const ColumnTiling& tiling);

struct RunningOperands {
  const float *mean, *variance, *old_mean, *old_variance;
  float *running_mean, *running_variance;
  const Scalars* scalars;
};
void batch_norm_running(cudaStream_t stream, const RunningOperands& operands, double momentum, const RowShape& shape);

// Weight and bias with a fused ReLU, from which it is recomputed where its result was positive; null without one.
struct FusedRelu {
  const float *weight, *bias;
};

template <typename T>
struct GradReduceOperands {
  const T *dy, *x;
  Statistics statistics;
  FusedRelu relu;
};
template <typename T>
void batch_norm_grad_reduce(cudaStream_t stream, const GradReduceOperands<T>& operands, float* weight_sums, float* bias_sums,
                            const RowShape& shape, const ColumnSums& sums, float* partial);

template <typename T>
struct GradInputOperands {
  const T *dy, *x;
  Statistics statistics;
  const float *weight, *weight_sums, *bias_sums;
  FusedRelu relu;
  const Scalars* scalars;
  T* dx;
  const T* addend;
};
template <typename T>
void batch_norm_grad_input(cudaStream_t stream, const GradInputOperands<T>& operands, const RowShape& shape,
                           const ColumnTiling& tiling);

template <typename T>
void batch_norm_grad_fixed(cudaStream_t stream, const T* dy, const float* variance, const float* weight, float epsilon, T* dx,
                           const T* addend, const RowShape& shape, const ColumnTiling& tiling);

}  // namespace snug::backends::cuda::launch
