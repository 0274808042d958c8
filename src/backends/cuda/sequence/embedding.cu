#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/embedding.h"
#include "backends/cuda/sequence/warp.cuh"

// The gradient adds without atomics on floats: the positions of the indices are sorted by counting, so that the positions of a
// table's row lie together and in order. The order in which a row's positions arrive does not matter, as each then finds its
// place by counting the smaller ones.

namespace snug::backends::cuda::launch {

namespace {

template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    embedding_kernel(const std::int32_t* indices, const T* table, T* y, TableShape shape, std::uint32_t packs) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::uint32_t vectors = shape.columns / V;
  const std::uint32_t column = pack % vectors * V;
  const auto index = static_cast<std::uint32_t>(indices[pack / vectors]);
  Pack<T, V> values;
  if (index < shape.rows) {  // a negative one is large
    values = load<V>(table + std::size_t{index} * shape.columns + column);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) values.at[v] = narrow<T>(0.0F);
  }
  store<V>(y + std::size_t{pack} * V, values);
}

// The scratch: positions of row v are those from starts[v] to starts[v + 1].
struct Sorting {
  std::uint32_t* starts;   // rows + 1
  std::uint32_t* cursors;  // rows: counts, then where the next position goes
  std::uint32_t* arrived;  // indices: positions by row, in any order
  std::uint32_t* sorted;   // indices: positions by row, in order

  Sorting(void* scratch, const TableShape& shape)
      : starts(static_cast<std::uint32_t*>(scratch)),
        cursors(starts + shape.rows + 1),
        arrived(cursors + shape.rows),
        sorted(arrived + shape.indices) {}
};

__global__ void __launch_bounds__(kThreads) count_kernel(const std::int32_t* indices, Sorting s, TableShape shape) {
  const std::uint32_t position = blockIdx.x * kThreads + threadIdx.x;
  if (position >= shape.indices) return;
  const auto index = static_cast<std::uint32_t>(indices[position]);
  if (index < shape.rows) atomicAdd(s.cursors + index, 1U);
}

constexpr unsigned kScanThreads = 1024;

// One block: each thread sums up a stretch of rows, then knows what lies before it.
__global__ void __launch_bounds__(kScanThreads) scan_kernel(Sorting s, std::uint32_t rows) {
  __shared__ std::uint32_t sums[kScanThreads];
  const std::uint32_t stretch = (rows + kScanThreads - 1) / kScanThreads;
  const std::uint32_t begin = min(threadIdx.x * stretch, rows);
  const std::uint32_t end = min(begin + stretch, rows);
  std::uint32_t sum = 0;
  for (std::uint32_t row = begin; row < end; ++row) sum += s.cursors[row];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned offset = 1; offset < kScanThreads; offset *= 2) {
    const std::uint32_t before = threadIdx.x >= offset ? sums[threadIdx.x - offset] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  std::uint32_t start = sums[threadIdx.x] - sum;
  for (std::uint32_t row = begin; row < end; ++row) {
    const std::uint32_t count = s.cursors[row];
    s.starts[row] = start;
    s.cursors[row] = start;
    start += count;
  }
  if (threadIdx.x == kScanThreads - 1) s.starts[rows] = start;
}

__global__ void __launch_bounds__(kThreads) arrive_kernel(const std::int32_t* indices, Sorting s, TableShape shape) {
  const std::uint32_t position = blockIdx.x * kThreads + threadIdx.x;
  if (position >= shape.indices) return;
  const auto index = static_cast<std::uint32_t>(indices[position]);
  if (index < shape.rows) s.arrived[atomicAdd(s.cursors + index, 1U)] = position;
}

__global__ void __launch_bounds__(kThreads) order_kernel(const std::int32_t* indices, Sorting s, TableShape shape) {
  const std::uint32_t place = blockIdx.x * kThreads + threadIdx.x;
  if (place >= s.starts[shape.rows]) return;
  const std::uint32_t position = s.arrived[place];
  const auto row = static_cast<std::uint32_t>(indices[position]);
  const std::uint32_t begin = s.starts[row];
  const std::uint32_t end = s.starts[row + 1];
  std::uint32_t smaller = 0;
  for (std::uint32_t other = begin; other < end; ++other) smaller += s.arrived[other] < position ? 1U : 0U;
  s.sorted[begin + smaller] = position;
}

constexpr unsigned kRowsPerBlock = kThreads / kWarp;
constexpr std::uint32_t kFew = 32;  // positions that one warp adds up; more are divided among a block's warps

// Adds up dy at the positions sorted[begin], sorted[begin + step], ...
template <typename T, int V>
__device__ void add_positions_of_row(const T* dy, const std::uint32_t* sorted, std::uint32_t begin, std::uint32_t end,
                                     std::uint32_t step, std::uint32_t columns, std::uint32_t column, float (&sums)[V]) {
#pragma unroll 4
  for (std::uint32_t i = begin; i < end; i += step) {
    const Pack<T, V> values = load<V>(dy + std::size_t{sorted[i]} * columns + column);
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] += widen(values.at[v]);
  }
}

template <typename T, int V>
__device__ void store_row(T* gradient, const T* addend, std::size_t at, const float (&sums)[V]) {
  Pack<T, V> result;
#pragma unroll
  for (int v = 0; v < V; ++v) result.at[v] = narrow<T>(sums[v]);
  store_sum<V>(gradient, addend, at, result);
}

// A block makes a few rows of the table, for 32 vectors of columns: a warp a row, and the rows with many positions all warps
// together, one row after the other.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads) sum_kernel(const T* dy, T* gradient, const T* addend, Sorting s, TableShape shape) {
  __shared__ float shared[kRowsPerBlock][V][kWarp];
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  const std::uint32_t column = (blockIdx.y * kWarp + lane) * V;
  const bool inside = column < shape.columns;
  const std::uint32_t first = blockIdx.x * kRowsPerBlock;
  const std::uint32_t own = first + warp;
  if (own < shape.rows && inside && s.starts[own + 1] - s.starts[own] <= kFew) {
    float sums[V] = {};
    add_positions_of_row<T, V>(dy, s.sorted, s.starts[own], s.starts[own + 1], 1, shape.columns, column, sums);
    store_row<T, V>(gradient, addend, std::size_t{own} * shape.columns + column, sums);
  }
  const std::uint32_t last = min(first + kRowsPerBlock, shape.rows);
  for (std::uint32_t row = first; row < last; ++row) {
    const std::uint32_t begin = s.starts[row];
    const std::uint32_t end = s.starts[row + 1];
    if (end - begin <= kFew) continue;  // the whole block
    float sums[V] = {};
    if (inside) add_positions_of_row<T, V>(dy, s.sorted, begin + warp, end, kRowsPerBlock, shape.columns, column, sums);
#pragma unroll
    for (int v = 0; v < V; ++v) shared[warp][v][lane] = sums[v];
    __syncthreads();
    if (warp == 0 && inside) {
      for (unsigned other = 1; other < kRowsPerBlock; ++other) {
#pragma unroll
        for (int v = 0; v < V; ++v) sums[v] += shared[other][v][lane];
      }
      store_row<T, V>(gradient, addend, std::size_t{row} * shape.columns + column, sums);
    }
    __syncthreads();
  }
}

template <typename T, int V>
void launch_sum(cudaStream_t stream, const T* dy, T* gradient, const T* addend, const Sorting& s, const TableShape& shape) {
  const dim3 grid(blocks_for(shape.rows, kRowsPerBlock), blocks_for(shape.columns / V, kWarp));
  sum_kernel<T, V><<<grid, kThreads, 0, stream>>>(dy, gradient, addend, s, shape);
}

template <typename T, int V>
void launch_embedding(cudaStream_t stream, const std::int32_t* indices, const T* table, T* y, const TableShape& shape) {
  const std::uint32_t packs = shape.indices * (shape.columns / V);
  embedding_kernel<T, V><<<blocks_for(packs), kThreads, 0, stream>>>(indices, table, y, shape, packs);
}

}  // namespace

template <typename T>
void embedding(cudaStream_t stream, const std::int32_t* indices, const T* table, T* y, const TableShape& shape) {
  if (shape.columns % kPack<T> == 0) {
    launch_embedding<T, kPack<T>>(stream, indices, table, y, shape);
  } else {
    launch_embedding<T, 1>(stream, indices, table, y, shape);
  }
  check_launch("cuda_embedding");
}

template <typename T>
void embedding_grad(cudaStream_t stream, const std::int32_t* indices, const T* dy, T* gradient, const T* addend,
                    const TableShape& shape, void* scratch) {
  const Sorting s(scratch, shape);
  const unsigned blocks = blocks_for(shape.indices);
  SNUG_CUDA_CALL(cudaMemsetAsync(s.cursors, 0, shape.rows * sizeof *s.cursors, stream));
  count_kernel<<<blocks, kThreads, 0, stream>>>(indices, s, shape);
  scan_kernel<<<1, kScanThreads, 0, stream>>>(s, shape.rows);
  arrive_kernel<<<blocks, kThreads, 0, stream>>>(indices, s, shape);
  order_kernel<<<blocks, kThreads, 0, stream>>>(indices, s, shape);
  if (shape.columns % kPack<T> == 0) {
    launch_sum<T, kPack<T>>(stream, dy, gradient, addend, s, shape);
  } else {
    launch_sum<T, 1>(stream, dy, gradient, addend, s, shape);
  }
  check_launch("cuda_embedding_grad");
}

#define SNUG_INSTANTIATE(T)                                                                    \
  template void embedding(cudaStream_t, const std::int32_t*, const T*, T*, const TableShape&); \
  template void embedding_grad(cudaStream_t, const std::int32_t*, const T*, T*, const T*, const TableShape&, void*)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
