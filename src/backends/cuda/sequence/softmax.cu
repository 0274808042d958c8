#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/softmax.h"
#include "backends/cuda/sequence/warp.cuh"

// A row is read once from memory and again from the cache. The sums of a lane are in float, those of a row in double. A lane
// writes only elements that no other lane reads.

namespace snug::backends::cuda::launch {

namespace {

constexpr unsigned kRowsPerBlock = kThreads / kWarp;

// A warp's row.
struct Place {
  std::uint32_t row;
  unsigned lane;

  __device__ Place() : row(blockIdx.x * kRowsPerBlock + threadIdx.x / kWarp), lane(threadIdx.x % kWarp) {}
};

template <typename T, int V>
__global__ void __launch_bounds__(kThreads) softmax_kernel(const T* x, T* y, SoftmaxShape shape) {
  const Place place;
  if (place.row >= shape.rows) return;  // the whole warp
  const std::size_t first = std::size_t{place.row} * shape.columns;
  const std::uint32_t vectors = shape.columns / V;
  float largest = -INFINITY;
#pragma unroll 4
  for (std::uint32_t i = place.lane; i < vectors; i += kWarp) {
    const Pack<T, V> pack = load<V>(x + first + i * V);
#pragma unroll
    for (int v = 0; v < V; ++v) largest = fmaxf(largest, widen(pack.at[v]));
  }
  largest = max_of_warp(largest);
  float exponentials = 0;
#pragma unroll 4
  for (std::uint32_t i = place.lane; i < vectors; i += kWarp) {
    const Pack<T, V> pack = load<V>(x + first + i * V);
#pragma unroll
    for (int v = 0; v < V; ++v) exponentials += expf(widen(pack.at[v]) - largest);
  }
  const auto sum = static_cast<float>(sum_of_warp(double{exponentials}));
#pragma unroll 2
  for (std::uint32_t i = place.lane; i < vectors; i += kWarp) {
    Pack<T, V> pack = load<V>(x + first + i * V);
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(expf(widen(pack.at[v]) - largest) / sum);
    store<V>(y + first + i * V, pack);
  }
}

// dx = y * (dy - sum of dy * y)
template <typename T, int V>
__global__ void __launch_bounds__(kThreads) grad_kernel(const T* dy, const T* y, T* dx, SoftmaxShape shape) {
  const Place place;
  if (place.row >= shape.rows) return;  // the whole warp
  const std::size_t first = std::size_t{place.row} * shape.columns;
  const std::uint32_t vectors = shape.columns / V;
  float products = 0;
#pragma unroll 2
  for (std::uint32_t i = place.lane; i < vectors; i += kWarp) {
    const Pack<T, V> gradients = load<V>(dy + first + i * V);
    const Pack<T, V> results = load<V>(y + first + i * V);
#pragma unroll
    for (int v = 0; v < V; ++v) products += widen(gradients.at[v]) * widen(results.at[v]);
  }
  const auto sum = static_cast<float>(sum_of_warp(double{products}));
#pragma unroll 2
  for (std::uint32_t i = place.lane; i < vectors; i += kWarp) {
    const Pack<T, V> gradients = load<V>(dy + first + i * V);
    Pack<T, V> results = load<V>(y + first + i * V);
#pragma unroll
    for (int v = 0; v < V; ++v) results.at[v] = narrow<T>(widen(results.at[v]) * (widen(gradients.at[v]) - sum));
    store<V>(dx + first + i * V, results);
  }
}

unsigned blocks_of(const SoftmaxShape& shape) { return blocks_for(shape.rows, kRowsPerBlock); }

}  // namespace

template <typename T>
void softmax(cudaStream_t stream, const T* x, T* y, const SoftmaxShape& shape) {
  if (shape.columns % kPack<T> == 0) {
    softmax_kernel<T, kPack<T>><<<blocks_of(shape), kThreads, 0, stream>>>(x, y, shape);
  } else {
    softmax_kernel<T, 1><<<blocks_of(shape), kThreads, 0, stream>>>(x, y, shape);
  }
  check_launch("cuda_softmax");
}

template <typename T>
void softmax_grad(cudaStream_t stream, const T* dy, const T* y, T* dx, const SoftmaxShape& shape) {
  if (shape.columns % kPack<T> == 0) {
    grad_kernel<T, kPack<T>><<<blocks_of(shape), kThreads, 0, stream>>>(dy, y, dx, shape);
  } else {
    grad_kernel<T, 1><<<blocks_of(shape), kThreads, 0, stream>>>(dy, y, dx, shape);
  }
  check_launch("cuda_softmax_grad");
}

#define SNUG_INSTANTIATE(T)                                               \
  template void softmax(cudaStream_t, const T*, T*, const SoftmaxShape&); \
  template void softmax_grad(cudaStream_t, const T*, const T*, T*, const SoftmaxShape&)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
