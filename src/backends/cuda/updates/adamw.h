// The update of ops/updates/adamw.cpp, by position: all operands have the same order in memory. Outputs may lie in the bytes of
// any input, which each thread has read before it writes. T: float, __half or __nv_bfloat16; M, of the moments: T, float,
// or codes of 8 bits.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

template <typename T, typename M>
struct AdamwOperands {
  const T *weight, *gradient;
  const M *first, *second;
  T *new_weight, *cleared_gradient;
  M *new_first, *new_second;
  const Scalars* scalars;
  const double* updates;     // this one counted
  const GradientNorm* norm;  // nullptr: the gradient is not scaled
};
// Two numbers about the first and the second moments of a tensor, or of a block.
struct MomentPair {
  float first, second;
};
struct AdamwConstants {
  double first_decay, second_decay, epsilon, weight_decay;
  bool stochastic;    // what has 16 bits is rounded stochastically, ...
  std::uint64_t key;  // ... keyed by this
};
template <typename T, typename M>
void adamw(cudaStream_t stream, const AdamwOperands<T, M>& operands, const AdamwConstants& constants, std::int64_t count);

// updates + 1 where the step is made. `norm` nullptr: none.
void count_update(cudaStream_t stream, const double* updates, const Scalars* scalars, const GradientNorm* norm, double* result);

}  // namespace snug::backends::cuda::launch
