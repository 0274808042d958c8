// Softmax cross-entropy of a matrix of logits [rows, classes]. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

template <typename T>
void softmax_cross_entropy(cudaStream_t stream, const T* logits, const std::int32_t* labels, const Scalars* scalars,
                           double smoothing, Metrics* metrics, std::uint32_t rows, std::uint32_t classes);

// The gradient may lie in the bytes of the logits.
template <typename T>
void softmax_cross_entropy_grad(cudaStream_t stream, const T* logits, const std::int32_t* labels, const Scalars* scalars,
                                double smoothing, T* gradient, std::uint32_t rows, std::uint32_t classes);

}  // namespace snug::backends::cuda::launch
