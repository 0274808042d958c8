// The two kinds of kernels over channels-last rows: a map, and two sums down the columns. Deterministic: the order of every sum
// depends only on the shape, and nothing is added atomically.
#pragma once

#include "backends/cuda/device_code.cuh"
#include "backends/cuda/norm/columns.h"
#include "ir/scalars.h"

namespace snug::backends::cuda {

// Examples of the group, and those of them that are not padding.
__device__ inline std::uint32_t examples_in_group(const RowShape& shape, std::uint32_t group) {
  const std::uint32_t begin = group * shape.group_size;
  return min(shape.group_size, shape.batch - begin);
}
__device__ inline std::uint32_t valid_in_group(const RowShape& shape, std::uint32_t group, const Scalars* scalars) {
  const std::uint64_t valid = std::uint64_t{scalars->valid_examples} * shape.rows_per_example;
  const std::uint32_t valid_of_batch = valid < shape.batch ? static_cast<std::uint32_t>(valid) : shape.batch;
  const std::uint32_t begin = group * shape.group_size;
  return valid_of_batch <= begin ? 0 : min(shape.group_size, valid_of_batch - begin);
}

inline constexpr std::uint32_t kRowsPerThread = 4;

// Map is constructed once per thread: Map(arguments, shape, group, channel); then map(row) for each of its rows, counted over the
// batch.
template <typename Map>
__global__ void __launch_bounds__(kThreads) map_rows(typename Map::Arguments arguments, RowShape shape, std::uint32_t vectors) {
  const std::uint32_t vector = blockIdx.y * blockDim.x + threadIdx.x;
  const std::uint32_t group = blockIdx.z;
  if (vector >= vectors) return;
  const Map map(arguments, shape, group, vector * Map::kVector);
  const std::uint32_t first = group * shape.group_size * shape.pixels;
  const std::uint32_t rows = examples_in_group(shape, group) * shape.pixels;
  std::uint32_t row = blockIdx.x * (kRowsPerThread * blockDim.y) + threadIdx.y;
#pragma unroll
  for (std::uint32_t k = 0; k < kRowsPerThread; ++k, row += blockDim.y) {
    if (row < rows) map(first + row);
  }
}

template <typename Map>
void launch_map_rows(cudaStream_t stream, const typename Map::Arguments& arguments, const RowShape& shape, const ColumnTiling& t,
                     const char* name) {
  const dim3 block(t.width, t.height);
  const dim3 grid(blocks_for(shape.rows_of_full_group(), t.height * kRowsPerThread), t.tiles, shape.groups);
  map_rows<Map><<<grid, block, 0, stream>>>(arguments, shape, t.vectors);
  check_launch(name);
}

// Terms is constructed once per thread: Terms(arguments, shape, group, channel); rows() is the number of the group's valid rows;
// add(row, a, b) adds the row's terms to the two sums of each of the thread's channels.
//   partial[group][chunk][sum 0 or 1][channel]
template <typename Terms>
__global__ void __launch_bounds__(kThreads) sum_chunks(typename Terms::Arguments arguments, RowShape shape, std::uint32_t vectors,
                                                       std::uint32_t rows_per_chunk, float* partial) {
  constexpr int V = Terms::kVector;
  __shared__ float shared[2][V][kThreads];
  const std::uint32_t vector = blockIdx.y * blockDim.x + threadIdx.x;
  const std::uint32_t group = blockIdx.z;
  const std::uint32_t channel = vector * V;
  float a[V] = {};
  float b[V] = {};
  if (vector < vectors) {
    const Terms terms(arguments, shape, group, channel);
    const std::uint32_t first = group * shape.group_size * shape.pixels;
    const std::uint32_t begin = blockIdx.x * rows_per_chunk;
    const std::uint32_t end = min(begin + rows_per_chunk, terms.rows());
#pragma unroll 4
    for (std::uint32_t row = begin + threadIdx.y; row < end; row += blockDim.y) terms.add(first + row, a, b);
  }
  const std::uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    shared[0][v][thread] = a[v];
    shared[1][v][thread] = b[v];
  }
  for (std::uint32_t half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
#pragma unroll
      for (int v = 0; v < V; ++v) {
        shared[0][v][thread] += shared[0][v][thread + half * blockDim.x];
        shared[1][v][thread] += shared[1][v][thread + half * blockDim.x];
      }
    }
  }
  if (threadIdx.y != 0 || vector >= vectors) return;
  // This thread wrote these last.
  float* out = partial + (std::size_t{group} * gridDim.x + blockIdx.x) * 2 * shape.channels + channel;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    out[v] = shared[0][v][thread];
    out[shape.channels + v] = shared[1][v][thread];
  }
}

inline constexpr unsigned kFinishWidth = 32;
inline constexpr unsigned kFinishHeight = 8;

// Adds the chunks up in double and calls finish(group, channel, sum a, sum b) with the totals.
template <typename Finish>
__global__ void __launch_bounds__(kFinishWidth* kFinishHeight)
    finish_sums(Finish finish, const float* partial, std::uint32_t chunks, std::uint32_t channels) {
  __shared__ double shared[2][kFinishHeight][kFinishWidth];
  const std::uint32_t channel = blockIdx.x * kFinishWidth + threadIdx.x;
  const std::uint32_t group = blockIdx.y;
  double a = 0;
  double b = 0;
  if (channel < channels) {
    for (std::uint32_t chunk = threadIdx.y; chunk < chunks; chunk += kFinishHeight) {
      const float* sums = partial + (std::size_t{group} * chunks + chunk) * 2 * channels + channel;
      a += sums[0];
      b += sums[channels];
    }
  }
  shared[0][threadIdx.y][threadIdx.x] = a;
  shared[1][threadIdx.y][threadIdx.x] = b;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  for (unsigned y = 1; y < kFinishHeight; ++y) {
    a += shared[0][y][threadIdx.x];
    b += shared[1][y][threadIdx.x];
  }
  finish(group, channel, a, b);
}

template <typename Terms, typename Finish>
void launch_sums(cudaStream_t stream, const typename Terms::Arguments& arguments, const Finish& finish, const RowShape& shape,
                 const ColumnSums& s, float* partial, const char* name) {
  const dim3 block(s.tiling.width, s.tiling.height);
  const dim3 grid(s.chunks, s.tiling.tiles, shape.groups);
  sum_chunks<Terms><<<grid, block, 0, stream>>>(arguments, shape, s.tiling.vectors, s.rows_per_chunk, partial);
  check_launch(name);
  const dim3 finish_grid(blocks_for(shape.channels, kFinishWidth), shape.groups);
  finish_sums<<<finish_grid, dim3(kFinishWidth, kFinishHeight), 0, stream>>>(finish, static_cast<const float*>(partial), s.chunks,
                                                                             shape.channels);
  check_launch(name);
}

}  // namespace snug::backends::cuda
