// Kernels that apply a function to every element: all operands have the same order in memory. Outputs may lie in the bytes of any
// input, which each thread has read before it writes.
#pragma once

#include "backends/cuda/device_code.cuh"

namespace snug::backends::cuda {

// A thread processes one pack; the last may be short. Positions stay below 2^31 plus one block's share.
template <typename T>
__device__ inline std::uint32_t first_of_thread() {
  return (blockIdx.x * kThreads + threadIdx.x) * static_cast<std::uint32_t>(kPack<T>);
}

template <typename T, typename F>
__global__ void __launch_bounds__(kThreads) map_one(F f, const T* x, T* y, std::uint32_t count) {
  constexpr int V = kPack<T>;
  const std::uint32_t first = first_of_thread<T>();
  if (first + V <= count) {
    Pack<T, V> pack = load<V>(x + first);
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(f(widen(pack.at[v])));
    store<V>(y + first, pack);
  } else {
    for (std::uint32_t i = first; i < count; ++i) y[i] = narrow<T>(f(widen(x[i])));
  }
}

template <typename T, typename F>
__global__ void __launch_bounds__(kThreads) map_two(F f, const T* a, const T* b, T* y, const T* addend, std::uint32_t count) {
  constexpr int V = kPack<T>;
  const std::uint32_t first = first_of_thread<T>();
  if (first + V <= count) {
    const Pack<T, V> left = load<V>(a + first);
    const Pack<T, V> right = load<V>(b + first);
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = narrow<T>(f(widen(left.at[v]), widen(right.at[v])));
    store_sum<V>(y, addend, first, result);
  } else {
    for (std::uint32_t i = first; i < count; ++i) y[i] = add_to(addend, i, narrow<T>(f(widen(a[i]), widen(b[i]))));
  }
}

template <typename T>
inline unsigned pack_blocks(std::int64_t count) {
  return blocks_for(count, kThreads * kPack<T>);
}

}  // namespace snug::backends::cuda
