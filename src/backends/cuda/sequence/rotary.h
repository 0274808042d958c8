// Rotates the pairs of a row's heads by its position. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

inline constexpr std::uint32_t kMostPairs = 128;

struct RotaryShape {
  std::uint32_t rows, columns;  // R, W
  std::uint32_t heads, half;    // pairs of a head
  std::uint32_t length;         // positions of an example, where the rows have none of their own
  // Of the pairs; they travel with the arguments of a launch.
  float frequencies[kMostPairs];
};

// `positions`: of the rows; nullptr: theirs in their example. y may lie in the bytes of x.
template <typename T>
void rotary(cudaStream_t stream, const T* x, const std::int32_t* positions, T* y, const RotaryShape& shape);

}  // namespace snug::backends::cuda::launch
