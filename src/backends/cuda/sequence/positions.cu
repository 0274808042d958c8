#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/positions.h"

namespace snug::backends::cuda::launch {

namespace {

template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    add_kernel(const T* x, const T* table, T* y, PositionShape shape, std::uint32_t packs) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::size_t first = std::size_t{pack} * V;
  // An example's rows lie together, so a pack's place in the table is its place in the example.
  const std::uint32_t packs_of_example = shape.length * (shape.columns / V);
  Pack<T, V> values = load<V>(x + first);
  const Pack<T, V> positions = load<V>(table + std::size_t{pack % packs_of_example} * V);
#pragma unroll
  for (int v = 0; v < V; ++v) values.at[v] = narrow<T>(widen(values.at[v]) + widen(positions.at[v]));
  store<V>(y + first, values);
}

template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    add_at_kernel(const T* x, const T* table, const std::int32_t* positions, T* y, PositionShape shape, std::uint32_t packs) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::size_t first = std::size_t{pack} * V;
  const std::uint32_t vectors = shape.columns / V;
  const auto position = static_cast<std::uint32_t>(positions[pack / vectors]);
  Pack<T, V> values = load<V>(x + first);
  if (position < shape.positions_of_table) {  // a negative one is large
    const Pack<T, V> added = load<V>(table + std::size_t{position} * shape.columns + pack % vectors * V);
#pragma unroll
    for (int v = 0; v < V; ++v) values.at[v] = narrow<T>(widen(values.at[v]) + widen(added.at[v]));
  }
  store<V>(y + first, values);
}

// Every thread sums the same columns of one position over the examples, in their order.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    grad_kernel(const T* dy, T* gradient, const T* addend, PositionShape shape, std::uint32_t packs) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::size_t first = std::size_t{pack} * V;
  const std::size_t example = std::size_t{shape.length} * shape.columns;
  const std::uint32_t examples = first < example ? shape.rows / shape.length : 0;
  float sums[V] = {};
#pragma unroll 4
  for (std::uint32_t n = 0; n < examples; ++n) {
    const Pack<T, V> values = load<V>(dy + n * example + first);
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] += widen(values.at[v]);
  }
  Pack<T, V> result;
#pragma unroll
  for (int v = 0; v < V; ++v) result.at[v] = narrow<T>(sums[v]);
  store_sum<V>(gradient, addend, first, result);
}

template <typename T, int V>
void launch_add(cudaStream_t stream, const T* x, const T* table, T* y, const PositionShape& shape) {
  const std::uint32_t packs = shape.rows * (shape.columns / V);
  add_kernel<T, V><<<blocks_for(packs), kThreads, 0, stream>>>(x, table, y, shape, packs);
}

template <typename T, int V>
void launch_add_at(cudaStream_t stream, const T* x, const T* table, const std::int32_t* positions, T* y,
                   const PositionShape& shape) {
  const std::uint32_t packs = shape.rows * (shape.columns / V);
  add_at_kernel<T, V><<<blocks_for(packs), kThreads, 0, stream>>>(x, table, positions, y, shape, packs);
}

template <typename T, int V>
void launch_grad(cudaStream_t stream, const T* dy, T* gradient, const T* addend, const PositionShape& shape) {
  const std::uint32_t packs = shape.positions_of_table * (shape.columns / V);
  grad_kernel<T, V><<<blocks_for(packs), kThreads, 0, stream>>>(dy, gradient, addend, shape, packs);
}

}  // namespace

template <typename T>
void add_positions(cudaStream_t stream, const T* x, const T* table, T* y, const PositionShape& shape) {
  if (shape.columns % kPack<T> == 0) {
    launch_add<T, kPack<T>>(stream, x, table, y, shape);
  } else {
    launch_add<T, 1>(stream, x, table, y, shape);
  }
  check_launch("cuda_add_positions");
}

template <typename T>
void add_positions_at(cudaStream_t stream, const T* x, const T* table, const std::int32_t* positions, T* y,
                      const PositionShape& shape) {
  if (shape.columns % kPack<T> == 0) {
    launch_add_at<T, kPack<T>>(stream, x, table, positions, y, shape);
  } else {
    launch_add_at<T, 1>(stream, x, table, positions, y, shape);
  }
  check_launch("cuda_add_positions_at");
}

template <typename T>
void add_positions_grad(cudaStream_t stream, const T* dy, T* gradient, const T* addend, const PositionShape& shape) {
  if (shape.columns % kPack<T> == 0) {
    launch_grad<T, kPack<T>>(stream, dy, gradient, addend, shape);
  } else {
    launch_grad<T, 1>(stream, dy, gradient, addend, shape);
  }
  check_launch("cuda_add_positions_grad");
}

#define SNUG_INSTANTIATE(T)                                                                                        \
  template void add_positions(cudaStream_t, const T*, const T*, T*, const PositionShape&);                         \
  template void add_positions_at(cudaStream_t, const T*, const T*, const std::int32_t*, T*, const PositionShape&); \
  template void add_positions_grad(cudaStream_t, const T*, T*, const T*, const PositionShape&)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
