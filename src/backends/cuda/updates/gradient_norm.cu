#include "backends/cuda/device_code.cuh"
#include "backends/cuda/updates/gradient_norm.h"

namespace snug::backends::cuda::launch {

namespace {

// Thread 0 gets the sum over the block, added in the same order each time.
__device__ double sum_of_block(double value) {
  __shared__ double shared[kThreads];
  shared[threadIdx.x] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  return shared[0];
}

// Every block takes each gridDim.x-th range of packs; its sum goes to partial[block], or, if there is only one block, to the
// result.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(const T* x, const double* before, double* result, std::uint32_t count) {
  constexpr int V = kPack<T>;
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads * V;
  double sum = 0;
  for (std::uint64_t first = (std::uint64_t{blockIdx.x} * kThreads + threadIdx.x) * V; first < count; first += step) {
    if (first + V <= count) {
      const Pack<T, V> pack = load<V>(x + first);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const double value = widen(pack.at[v]);
        sum += value * value;
      }
    } else {
      for (std::uint64_t i = first; i < count; ++i) {
        const double value = widen(x[i]);
        sum += value * value;
      }
    }
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) result[blockIdx.x] = before == nullptr ? sum : *before + sum;
}

__global__ void __launch_bounds__(kThreads)
    partial_kernel(const double* partial, std::uint32_t blocks, const double* before, double* result) {
  double sum = 0;
  for (std::uint32_t i = threadIdx.x; i < blocks; i += kThreads) sum += partial[i];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *result = before == nullptr ? sum : *before + sum;
}

__global__ void factor_kernel(const double* sum, const Scalars* scalars, GradientNorm* result) {
  const double norm = sqrt(*sum) / scalars->loss_scale;
  const double factor = static_cast<double>(scalars->clip_norm) / (norm + 1e-6);
  result->norm = norm;
  result->factor = isfinite(norm) ? fmin(1.0, factor) : __longlong_as_double(0x7FF8000000000000LL);
}

__global__ void finite_kernel(const Metrics* metrics, GradientNorm* result) {
  result->norm = 0;
  result->factor = isfinite(metrics->loss) ? 1.0 : __longlong_as_double(0x7FF8000000000000LL);
}

}  // namespace

template <typename T>
void sum_of_squares(cudaStream_t stream, const T* x, const double* before, double* sum, double* partial, std::int64_t count) {
  const std::uint32_t blocks = blocks_of_squares(count);
  const auto elements = static_cast<std::uint32_t>(count);
  if (blocks == 1) {
    squares_kernel<<<1, kThreads, 0, stream>>>(x, before, sum, elements);
  } else {
    squares_kernel<<<blocks, kThreads, 0, stream>>>(x, nullptr, partial, elements);
    partial_kernel<<<1, kThreads, 0, stream>>>(partial, blocks, before, sum);
  }
  check_launch("cuda_sum_of_squares");
}

void clip_factor(cudaStream_t stream, const double* sum, const Scalars* scalars, GradientNorm* result) {
  factor_kernel<<<1, 1, 0, stream>>>(sum, scalars, result);
  check_launch("cuda_clip_factor");
}

void finite_factor(cudaStream_t stream, const Metrics* metrics, GradientNorm* result) {
  finite_kernel<<<1, 1, 0, stream>>>(metrics, result);
  check_launch("cuda_finite_factor");
}

template void sum_of_squares(cudaStream_t, const float*, const double*, double*, double*, std::int64_t);
template void sum_of_squares(cudaStream_t, const __half*, const double*, double*, double*, std::int64_t);
template void sum_of_squares(cudaStream_t, const __nv_bfloat16*, const double*, double*, double*, std::int64_t);

}  // namespace snug::backends::cuda::launch
