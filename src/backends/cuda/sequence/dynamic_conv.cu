#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/block.cuh"
#include "backends/cuda/sequence/dynamic_conv.h"

// Sums are in float, in an order that only the shape decides; those over all rows become double between threads.

namespace snug::backends::cuda::launch {

namespace {

// Neighboring rows that a thread sums up: each row that they see is loaded once for all of them.
constexpr int kRowsOfThread = 4;
// Taps whose gradients a thread sums up at once: a gradient of the output is loaded once for all of them.
constexpr int kTapsAtOnce = 8;

// Forward, a row is the sum of the rows that its taps see, by its own weights; backward, of the rows whose taps see it, by
// theirs.
template <bool Backward, typename T, int V>
__global__ void __launch_bounds__(kThreads)
    weigh_kernel(const T* rows, const T* weight, T* to, const T* addend, DynamicConvShape shape, std::uint32_t packs) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::uint32_t vectors = shape.columns / V;
  const std::uint32_t column = pack % vectors * V;
  const std::uint32_t groups = (shape.length + kRowsOfThread - 1) / kRowsOfThread;
  const std::size_t example = std::size_t{pack / vectors / groups} * shape.length;
  const int first = static_cast<int>(pack / vectors % groups) * kRowsOfThread;
  const int length = static_cast<int>(shape.length);
  const int kernel = static_cast<int>(shape.kernel);
  const int left = static_cast<int>(shape.left);
  const T* of_head = weight + std::size_t{column / shape.head_size} * shape.kernel;
  // The positions that the first of the rows sums up begin here; each further row's begin one later.
  const int begin = first + (Backward ? left - kernel + 1 : -left);
  const int end = min(length, begin + kernel + kRowsOfThread - 1);
  float sums[kRowsOfThread][V] = {};
  for (int seen = max(0, begin); seen < end; ++seen) {
    const Pack<T, V> values = load<V>(rows + (example + seen) * shape.columns + column);
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      const int own = first + i;
      const int tap = Backward ? own + left - seen : seen + left - own;
      if (tap < 0 || tap >= kernel || own >= length) continue;
      const float factor = widen(of_head[(example + (Backward ? seen : own)) * shape.weights_of_row + tap]);
#pragma unroll
      for (int v = 0; v < V; ++v) sums[i][v] += factor * widen(values.at[v]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    if (first + i >= length) return;
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = narrow<T>(sums[i][v]);
    store_sum<V>(to, addend, (example + first + i) * shape.columns + column, result);
  }
}

template <int V, typename T>
__device__ inline float dot(const Pack<T, V>& a, const Pack<T, V>& b) {
  float sum = 0;
#pragma unroll
  for (int v = 0; v < V; ++v) sum += widen(a.at[v]) * widen(b.at[v]);
  return sum;
}

// Where row `row`'s tap looks: at the head's columns of another row, or beyond the example.
template <typename T>
__device__ inline const T* seen_by(const T* x, const DynamicConvShape& shape, std::uint32_t row, std::uint32_t tap) {
  const std::uint32_t seen = row % shape.length + tap - shape.left;  // beyond on the left it is large
  return seen < shape.length ? x + (std::size_t{row} + tap - shape.left) * shape.columns : nullptr;
}

// Neighboring lanes share the columns of one head of one row; there are a power of two of them.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    grad_of_rows_kernel(const T* dy, const T* x, T* dweight, const T* addend, DynamicConvShape shape, std::uint32_t lanes) {
  const std::uint32_t lane = threadIdx.x % lanes;
  const std::uint32_t item = (blockIdx.x * kThreads + threadIdx.x) / lanes;
  const bool exists = item < shape.rows * shape.heads;  // the others of its warp need it for their sums
  const std::uint32_t row = exists ? item / shape.heads : 0;
  const std::uint32_t column = item % shape.heads * shape.head_size;
  const T* gradient = dy + std::size_t{row} * shape.columns + column;
  for (std::uint32_t tap = 0; tap < shape.kernel; ++tap) {
    const T* seen = seen_by(x + column, shape, row, tap);
    float sum = 0;
    if (exists && seen != nullptr) {
      for (std::uint32_t c = lane * V; c < shape.head_size; c += lanes * V)
        sum += dot<V>(load<V>(gradient + c), load<V>(seen + c));
    }
    for (std::uint32_t offset = lanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAllLanes, sum, offset);
    const std::size_t at = std::size_t{item} * shape.kernel + tap;
    if (exists && tap % lanes == lane) dweight[at] = add_to(addend, at, narrow<T>(sum));
  }
}

// A block sums up a chunk of rows for one head.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    chunk_kernel(const T* dy, const T* x, float* partial, DynamicConvShape shape, DynamicConvChunks chunks, std::uint32_t lanes) {
  __shared__ double shared[kThreads / kWarp];
  const std::uint32_t chunk = blockIdx.x / shape.heads;
  const std::uint32_t head = blockIdx.x % shape.heads;
  const std::uint32_t column = head * shape.head_size;
  const std::uint32_t end = min(shape.rows, (chunk + 1) * chunks.rows);
  float* const sums_of_head = partial + (std::size_t{chunk} * shape.heads + head) * shape.kernel;
  for (std::uint32_t first = 0; first < shape.kernel; first += kTapsAtOnce) {
    float sums[kTapsAtOnce] = {};
    for (std::uint32_t row = chunk * chunks.rows + threadIdx.x / lanes; row < end; row += kThreads / lanes) {
      const T* gradient = dy + std::size_t{row} * shape.columns + column;
      for (std::uint32_t c = threadIdx.x % lanes * V; c < shape.head_size; c += lanes * V) {
        const Pack<T, V> of_output = load<V>(gradient + c);
#pragma unroll
        for (int i = 0; i < kTapsAtOnce; ++i) {
          const T* seen = first + i < shape.kernel ? seen_by(x + column, shape, row, first + i) : nullptr;
          if (seen != nullptr) sums[i] += dot<V>(of_output, load<V>(seen + c));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTapsAtOnce; ++i) {
      const double sum = sum_of_block(double{sums[i]}, shared);
      if (threadIdx.x == 0 && first + i < shape.kernel) sums_of_head[first + i] = static_cast<float>(sum);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_chunks_kernel(const float* partial, T* dweight, const T* addend, std::uint32_t weights, std::uint32_t chunks) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= weights) return;
  double sum = 0;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) sum += double{partial[std::size_t{chunk} * weights + i]};
  dweight[i] = add_to(addend, i, narrow<T>(static_cast<float>(sum)));
}

// body(vector) with the number of values in a pack, as a constant: a pack belongs to one head.
template <typename T, typename Body>
void with_vector(const DynamicConvShape& shape, const Body& body) {
  if (shape.head_size % kPack<T> == 0) {
    body(std::integral_constant<int, kPack<T>>{});
  } else {
    body(std::integral_constant<int, 1>{});
  }
}

// A power of two that does not leave lanes without columns.
std::uint32_t lanes_of_head(const DynamicConvShape& shape, std::uint32_t vector) {
  std::uint32_t lanes = 1;
  while (lanes < kWarp && 2 * lanes * vector <= shape.head_size) lanes *= 2;
  return lanes;
}

template <bool Backward, typename T>
void weigh(cudaStream_t stream, const T* rows, const T* weight, T* to, const T* addend, const DynamicConvShape& shape) {
  with_vector<T>(shape, [&](auto vector) {
    constexpr int V = decltype(vector)::value;
    const std::uint32_t groups = (shape.length + kRowsOfThread - 1) / kRowsOfThread;
    const std::uint32_t packs = shape.rows / shape.length * groups * (shape.columns / V);
    weigh_kernel<Backward, T, V><<<blocks_for(packs), kThreads, 0, stream>>>(rows, weight, to, addend, shape, packs);
  });
}

}  // namespace

template <typename T>
void dynamic_conv(cudaStream_t stream, const T* x, const T* weight, T* y, const DynamicConvShape& shape) {
  weigh<false, T>(stream, x, weight, y, nullptr, shape);
  check_launch("cuda_dynamic_conv");
}

template <typename T>
void dynamic_conv_grad_input(cudaStream_t stream, const T* dy, const T* weight, T* dx, const T* addend,
                             const DynamicConvShape& shape) {
  weigh<true, T>(stream, dy, weight, dx, addend, shape);
  check_launch("cuda_dynamic_conv_grad_input");
}

template <typename T>
void dynamic_conv_grad_weight(cudaStream_t stream, const T* dy, const T* x, T* dweight, const T* addend,
                              const DynamicConvShape& shape) {
  with_vector<T>(shape, [&](auto vector) {
    constexpr int V = decltype(vector)::value;
    const std::uint32_t lanes = lanes_of_head(shape, V);
    const std::int64_t threads = std::int64_t{shape.rows} * shape.heads * lanes;
    grad_of_rows_kernel<T, V><<<blocks_for(threads), kThreads, 0, stream>>>(dy, x, dweight, addend, shape, lanes);
  });
  check_launch("cuda_dynamic_conv_grad_weight");
}

template <typename T>
void lightweight_conv_grad_weight(cudaStream_t stream, const T* dy, const T* x, T* dweight, const T* addend, float* partial,
                                  const DynamicConvShape& shape) {
  const auto chunks = DynamicConvChunks::of(shape);
  with_vector<T>(shape, [&](auto vector) {
    constexpr int V = decltype(vector)::value;
    chunk_kernel<T, V>
        <<<chunks.count * shape.heads, kThreads, 0, stream>>>(dy, x, partial, shape, chunks, lanes_of_head(shape, V));
  });
  check_launch("cuda_lightweight_conv_grad_weight");
  const std::uint32_t weights = shape.heads * shape.kernel;
  add_chunks_kernel<T><<<blocks_for(weights), kThreads, 0, stream>>>(partial, dweight, addend, weights, chunks.count);
  check_launch("cuda_lightweight_conv_grad_weight");
}

#define SNUG_INSTANTIATE(T)                                                                                        \
  template void dynamic_conv(cudaStream_t, const T*, const T*, T*, const DynamicConvShape&);                       \
  template void dynamic_conv_grad_input(cudaStream_t, const T*, const T*, T*, const T*, const DynamicConvShape&);  \
  template void dynamic_conv_grad_weight(cudaStream_t, const T*, const T*, T*, const T*, const DynamicConvShape&); \
  template void lightweight_conv_grad_weight(cudaStream_t, const T*, const T*, T*, const T*, float*, const DynamicConvShape&)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
