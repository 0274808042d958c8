// Clipping by the norm of all gradients together: its square, tensor by tensor, and the factor.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda {

// Blocks that each sum a share of `count` elements. Their number depends on `count` alone, so the order of a sum does too.
inline std::uint32_t blocks_of_squares(std::int64_t count) {
  constexpr std::int64_t kElementsPerBlock = 8192;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>((count + kElementsPerBlock - 1) / kElementsPerBlock, 1, 512));
}

}  // namespace snug::backends::cuda

namespace snug::backends::cuda::launch {

// sum = before + squares of x; no `before` when null. `partial`: one double for every block of squares, not read when there is
// one.
template <typename T>
void sum_of_squares(cudaStream_t stream, const T* x, const double* before, double* sum, double* partial, std::int64_t count);

void clip_factor(cudaStream_t stream, const double* sum, const Scalars* scalars, GradientNorm* result);

void finite_factor(cudaStream_t stream, const Metrics* metrics, GradientNorm* result);

}  // namespace snug::backends::cuda::launch
