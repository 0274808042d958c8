// Stochastic rounding of what is stored in 16 bits.
#pragma once

#include <type_traits>

#include "backends/cuda/device_code.cuh"
#include "ops/random_draws.h"

namespace snug::backends::cuda {

// One of the two neighbors that T has; `random`: 16 bits.
template <typename T>
__device__ inline float round_stochastically(float value, std::uint32_t random) {
  static_assert(sizeof(T) == 2);
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return ops::stochastic_bfloat(value, random);
  } else {
    return ops::stochastic_half(value, random);
  }
}

}  // namespace snug::backends::cuda
