// Softmax cross-entropy of a matrix of logits [rows, classes]. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

struct LossRows {
  const std::int32_t* labels;
  const float* weights;  // of the rows; null: all are 1
  const Scalars* scalars;
  double smoothing;
  std::uint32_t rows, classes;
  std::uint32_t rows_per_example;
};

template <typename T>
void softmax_cross_entropy(cudaStream_t stream, const T* logits, const LossRows& rows, Metrics* metrics);

// The gradient may lie in the bytes of the logits.
template <typename T>
void softmax_cross_entropy_grad(cudaStream_t stream, const T* logits, const LossRows& rows, T* gradient);

}  // namespace snug::backends::cuda::launch
