// Shared device code: stored types and the type they are computed in, vectors of 16 bytes, and the size of launches.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backends/cuda/device/check.h"

namespace snug::backends::cuda {

inline constexpr unsigned kThreads = 256;

inline unsigned blocks_for(std::int64_t items, unsigned per_block = kThreads) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

// Values are stored as T and computed in float; f64 (the metrics alone) in double.
__device__ inline float widen(float value) { return value; }
__device__ inline float widen(__half value) { return __half2float(value); }
__device__ inline float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline double widen(double value) { return value; }

template <typename T, typename Wide>
__device__ inline T narrow(Wide value) {
  return static_cast<T>(value);
}
template <>
__device__ inline __half narrow<__half, float>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline __half narrow<__half, double>(double value) {
  return __double2half(value);
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16, float>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16, double>(double value) {
  return __double2bfloat16(value);
}

// The bits of a separate `add` node: the result is rounded to T first, then added, and rounded again. No addend: no addition.
template <typename T>
__device__ inline T add_to(const T* addend, std::size_t position, T result) {
  return addend == nullptr ? result : narrow<T>(widen(addend[position]) + widen(result));
}

// V neighbors, read or written at once. Every value in the arena begins at a multiple of 64 bytes.
template <typename T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

// How many fill 16 bytes, the widest access.
template <typename T>
inline constexpr int kPack = 16 / sizeof(T);

template <int V, typename T>
__device__ inline Pack<T, V> load(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <int V, typename T>
__device__ inline void store(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

// add_to for V neighbors.
template <int V, typename T>
__device__ inline void store_sum(T* to, const T* addend, std::size_t position, Pack<T, V> results) {
  if (addend != nullptr) {
    const Pack<T, V> before = load<V>(addend + position);
#pragma unroll
    for (int v = 0; v < V; ++v) results.at[v] = narrow<T>(widen(before.at[v]) + widen(results.at[v]));
  }
  store<V>(to + position, results);
}

}  // namespace snug::backends::cuda
