// The update of ops/updates/sgd.cpp, by position: all operands have the same order in memory. Outputs may lie in the bytes of any
// input, which each thread has read before it writes. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

template <typename T>
struct SgdOperands {
  const T* weight;
  const T* gradient;
  const T* momentum;  // nullptr: none
  T* new_weight;
  T* cleared_gradient;
  T* new_momentum;
  const Scalars* scalars;
  const GradientNorm* norm;  // nullptr: the gradient is not scaled
};
struct SgdConstants {
  float momentum, weight_decay;
  bool nesterov;
  bool stochastic;    // halves are rounded stochastically, ...
  std::uint64_t key;  // ... keyed by this
};
template <typename T>
void sgd(cudaStream_t stream, const SgdOperands<T>& operands, SgdConstants constants, std::int64_t count);

}  // namespace snug::backends::cuda::launch
