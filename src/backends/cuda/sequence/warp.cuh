// Sums and maxima over a warp, of which every lane gets the same result, made in the same order each time.
#pragma once

namespace snug::backends::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

template <typename A>
__device__ inline A sum_of_warp(A value) {
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}
__device__ inline float max_of_warp(float value) {
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

}  // namespace snug::backends::cuda
