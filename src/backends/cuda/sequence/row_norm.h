// Layer norm and RMS norm of rows [rows, columns], a warp per row. T: float, __half or __nv_bfloat16; statistics and parameters
// are float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/norm/columns.h"

namespace snug::backends::cuda::launch {

struct RowNormShape {
  std::uint32_t rows, columns;

  // For the sums over all rows.
  RowShape as_rows() const { return {.batch = rows, .pixels = 1, .channels = columns, .group_size = rows, .groups = 1}; }
};

// y may lie in the bytes of x.
template <typename T>
struct LayerNormOperands {
  const T* x;
  const float *weight, *bias;
  T* y;
  float *mean, *inverse_std;
};
template <typename T>
void layer_norm(cudaStream_t stream, const LayerNormOperands<T>& operands, float epsilon, const RowNormShape& shape);

template <typename T>
struct RmsNormOperands {
  const T* x;
  const float* weight;
  T* y;
  float* inverse_rms;
};
template <typename T>
void rms_norm(cudaStream_t stream, const RmsNormOperands<T>& operands, float epsilon, const RowNormShape& shape);

template <typename T>
struct RowNormGradOperands {
  const T *dy, *x;
  const float* weight;
  const float *mean, *inverse;  // mean nullptr: rms_norm
  T* dx;                        // may lie in the bytes of dy or x
  const T* addend;
};
template <typename T>
void row_norm_grad_input(cudaStream_t stream, const RowNormGradOperands<T>& operands, const RowNormShape& shape);

template <typename T>
struct RowNormParameterOperands {
  const T *dy, *x;
  const float *mean, *inverse;  // mean nullptr: rms_norm
  float* weight_gradient;
  float* bias_gradient;  // nullptr: rms_norm
  const float* addend;   // of the weight's
};
template <typename T>
void row_norm_grad_parameters(cudaStream_t stream, const RowNormParameterOperands<T>& operands, const RowNormShape& shape,
                              const ColumnSums& sums, float* partial);

}  // namespace snug::backends::cuda::launch
