#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/attention_step.h"
#include "backends/cuda/sequence/block.cuh"

// The rows' own keys and values are put into the caches first, by a launch of their own: the heads that share them all read them.

namespace snug::backends::cuda::launch {

namespace {

constexpr unsigned kWarps = kThreads / kWarp;

// A thread for each column of an example's own key and value.
template <typename T>
__global__ void __launch_bounds__(kThreads) remember_kernel(StepOperands<T> o, StepShape shape, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::uint32_t kv_width = shape.kv_heads * shape.head_size;
  const std::uint32_t width = shape.heads * shape.head_size;
  const std::uint32_t example = i / kv_width;
  const std::uint32_t column = i % kv_width;
  const auto position = static_cast<std::uint32_t>(o.positions[example]);
  if (position >= shape.context) return;  // padding; a negative one is large
  const T* own = o.qkv + std::size_t{example} * (width + 2 * kv_width) + width + column;
  const std::size_t to = (std::size_t{example} * shape.context + position) * kv_width + column;
  o.keys[to] = own[0];
  o.values[to] = own[kv_width];
}

// A block for each example and head. A warp takes every kWarps-th key: its lanes divide the columns.
template <typename T>
__global__ void __launch_bounds__(kThreads) attend_kernel(StepOperands<T> o, StepShape shape) {
  __shared__ double shared[kWarps];
  __shared__ float sums[kWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  const std::uint32_t size = shape.head_size;
  const std::uint32_t example = blockIdx.x / shape.heads;
  const std::uint32_t head = blockIdx.x % shape.heads;
  T* y = o.y + std::size_t{blockIdx.x} * size;
  const auto position = static_cast<std::uint32_t>(o.positions[example]);
  if (position >= shape.context) {  // the whole block
    for (std::uint32_t c = threadIdx.x; c < size; c += kThreads) y[c] = narrow<T>(0.0F);
    return;
  }
  const std::uint32_t seen = position + 1;
  const std::uint32_t kv_width = shape.kv_heads * size;
  const std::uint32_t kv_head = head / (shape.heads / shape.kv_heads);
  const T* query = o.qkv + std::size_t{example} * (shape.heads * size + 2 * kv_width) + head * size;
  const std::size_t first = std::size_t{example} * shape.context * kv_width + kv_head * size;
  const T* keys = o.keys + first;
  const T* values = o.values + first;
  float* weights = o.weights + std::size_t{blockIdx.x} * shape.context;

  float largest = -INFINITY;
  for (std::uint32_t j = warp; j < seen; j += kWarps) {
    const T* key = keys + std::size_t{j} * kv_width;
    float product = 0;
    for (std::uint32_t c = lane; c < size; c += kWarp) product = fmaf(widen(query[c]), widen(key[c]), product);
    const float score = shape.scale * sum_of_warp(product);
    if (lane == 0) weights[j] = score;
    largest = fmaxf(largest, score);
  }
  largest = max_of_block(largest, shared);  // all scores are there afterwards
  float exponentials = 0;
  for (std::uint32_t j = threadIdx.x; j < seen; j += kThreads) {
    const float weight = expf(weights[j] - largest);
    weights[j] = weight;
    exponentials += weight;
  }
  const auto sum = static_cast<float>(sum_of_block(double{exponentials}, shared));  // and all weights

  for (std::uint32_t begin = 0; begin < size; begin += kWarp) {
    const std::uint32_t c = begin + lane;
    float weighted = 0;
    if (c < size) {
#pragma unroll 4
      for (std::uint32_t j = warp; j < seen; j += kWarps)
        weighted = fmaf(weights[j], widen(values[std::size_t{j} * kv_width + c]), weighted);
    }
    sums[warp][lane] = weighted;
    __syncthreads();
    if (warp == 0 && c < size) {
      for (unsigned other = 1; other < kWarps; ++other) weighted += sums[other][lane];
      y[c] = narrow<T>(weighted / sum);
    }
    __syncthreads();  // before others' sums are overwritten
  }
}

// What a cache holds, where it is not in the same bytes already.
template <typename T>
void carry_over(cudaStream_t stream, const T* from, T* to, std::size_t elements) {
  if (from != to) SNUG_CUDA_CALL(cudaMemcpyAsync(to, from, elements * sizeof(T), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

template <typename T>
void attention_step(cudaStream_t stream, const StepOperands<T>& operands, const StepShape& shape) {
  const std::uint32_t own = shape.examples * shape.kv_heads * shape.head_size;
  const std::size_t cached = std::size_t{own} * shape.context;
  carry_over(stream, operands.keys_before, operands.keys, cached);
  carry_over(stream, operands.values_before, operands.values, cached);
  remember_kernel<<<blocks_for(own), kThreads, 0, stream>>>(operands, shape, own);
  attend_kernel<<<shape.examples * shape.heads, kThreads, 0, stream>>>(operands, shape);
  check_launch("cuda_attention_step");
}

template void attention_step(cudaStream_t, const StepOperands<float>&, const StepShape&);
template void attention_step(cudaStream_t, const StepOperands<__half>&, const StepShape&);
template void attention_step(cudaStream_t, const StepOperands<__nv_bfloat16>&, const StepShape&);

}  // namespace snug::backends::cuda::launch
