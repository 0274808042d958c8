// Sums and maxima over a block of whole warps, of which every thread gets the same result, made in the same order each time.
// `shared`: a number for every warp.
#pragma once

#include "backends/cuda/sequence/warp.cuh"

namespace snug::backends::cuda {

__device__ inline double sum_of_block(double value, double* shared) {
  value = sum_of_warp(value);
  __syncthreads();  // before others' sums are overwritten
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += shared[warp];
  return sum;
}
__device__ inline float max_of_block(float value, double* shared) {
  value = max_of_warp(value);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  float most = -INFINITY;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) most = fmaxf(most, static_cast<float>(shared[warp]));
  return most;
}

}  // namespace snug::backends::cuda
