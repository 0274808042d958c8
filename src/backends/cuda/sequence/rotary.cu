#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/rotary.h"
#include "ops/sequence/rotary_angles.h"

namespace snug::backends::cuda::launch {

namespace {

// A thread rotates V neighboring pairs of every head of a row, all by the same angles. The frequencies are read where the
// arguments of a launch lie: a copy in each thread's own memory would cost more than the rotation.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads) rotary_kernel(const T* x, const std::int32_t* positions, T* y,
                                                          const __grid_constant__ RotaryShape shape, std::uint32_t packs) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::uint32_t vectors = shape.half / V;
  const std::uint32_t row = pack / vectors;
  const std::uint32_t pair = pack % vectors * V;
  const std::int64_t position = positions == nullptr ? std::int64_t{row % shape.length} : std::int64_t{positions[row]};
  float cosine[V];
  float sine[V];
#pragma unroll
  for (int v = 0; v < V; ++v) sincosf(ops::rotary_angle(position, shape.frequencies[pair + v]), &sine[v], &cosine[v]);
  std::size_t at = std::size_t{row} * shape.columns + pair;
  for (std::uint32_t head = 0; head < shape.heads; ++head, at += std::size_t{2} * shape.half) {
    Pack<T, V> first = load<V>(x + at);
    Pack<T, V> second = load<V>(x + at + shape.half);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float x1 = widen(first.at[v]);
      const float x2 = widen(second.at[v]);
      first.at[v] = narrow<T>(x1 * cosine[v] - x2 * sine[v]);
      second.at[v] = narrow<T>(x2 * cosine[v] + x1 * sine[v]);
    }
    store<V>(y + at, first);
    store<V>(y + at + shape.half, second);
  }
}

template <typename T, int V>
void launch_rotary(cudaStream_t stream, const T* x, const std::int32_t* positions, T* y, const RotaryShape& shape) {
  const std::uint32_t packs = shape.rows * (shape.half / V);
  rotary_kernel<T, V><<<blocks_for(packs), kThreads, 0, stream>>>(x, positions, y, shape, packs);
  check_launch("cuda_rotary");
}

}  // namespace

template <typename T>
void rotary(cudaStream_t stream, const T* x, const std::int32_t* positions, T* y, const RotaryShape& shape) {
  if (shape.half % kPack<T> == 0 && shape.columns % kPack<T> == 0) {
    launch_rotary<T, kPack<T>>(stream, x, positions, y, shape);
  } else {
    launch_rotary<T, 1>(stream, x, positions, y, shape);
  }
  const std::size_t rotated = std::size_t{2} * shape.heads * shape.half;
  if (x == y || rotated == shape.columns) return;
  const std::size_t pitch = shape.columns * sizeof(T);
  SNUG_CUDA_CALL(cudaMemcpy2DAsync(y + rotated, pitch, x + rotated, pitch, (shape.columns - rotated) * sizeof(T), shape.rows,
                                   cudaMemcpyDeviceToDevice, stream));
}

template void rotary(cudaStream_t, const float*, const std::int32_t*, float*, const RotaryShape&);
template void rotary(cudaStream_t, const __half*, const std::int32_t*, __half*, const RotaryShape&);
template void rotary(cudaStream_t, const __nv_bfloat16*, const std::int32_t*, __nv_bfloat16*, const RotaryShape&);

}  // namespace snug::backends::cuda::launch
