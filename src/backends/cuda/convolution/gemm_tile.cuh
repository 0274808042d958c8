// Shared by the products behind convolutions: copies into shared memory ahead of the arithmetic, and which thread computes what.
#pragma once

#include <cstdint>

#include <cuda_pipeline.h>

#include "backends/cuda/device_code.cuh"

namespace snug::backends::cuda {

// A warp's lanes are arranged 8 down the rows and 4 across the columns of its part.
inline constexpr int kLaneRows = 8;
inline constexpr int kLaneColumns = 4;
// Tiles in flight: one is used while the others arrive.
inline constexpr int kStages = 3;

// Four floats, or zeros.
__device__ inline void copy4(float* to, const float* from, bool valid) { __pipeline_memcpy_async(to, from, 16, valid ? 0 : 16); }
// One float, or zero.
__device__ inline void copy1(float* to, const float* from, bool valid) { __pipeline_memcpy_async(to, from, 4, valid ? 0 : 4); }

__device__ inline float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ inline float element(const float4& vector, int i) {
  return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}

// Runs `compute` on every tile in turn while `load` fetches the ones after it. Both get the stage whose memory they use.
template <typename Load, typename Compute>
__device__ inline void pipelined(int tiles, Load load, Compute compute) {
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < tiles) load(stage);
    __pipeline_commit();
  }
  int stage = 0;
  int next = kStages - 1;
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(kStages - 2);
    // All threads' copies have arrived, and none still computes with the stage that is loaded next.
    __syncthreads();
    if (tile + kStages - 1 < tiles) load(next);
    __pipeline_commit();
    compute(stage);
    stage = stage + 1 == kStages ? 0 : stage + 1;
    next = next + 1 == kStages ? 0 : next + 1;
  }
}

}  // namespace snug::backends::cuda
