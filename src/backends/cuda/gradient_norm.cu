#include "backends/cuda/device_code.cuh"
#include "backends/cuda/gradient_norm.h"

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

// Every block takes each gridDim.x-th stretch of packs; its sum goes to partial[block], or with the only block to the end.
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

// What an element's update needs, read once a thread from the blocks that change between steps.
struct Rule {
  SgdConstants constants;
  float learning_rate, loss_scale, factor;
  bool skip, has_momentum;

  // The new weight by the rule of ops/sgd.cpp, in float; `m` becomes the new momentum.
  __device__ float operator()(float w, float g, float& m) const {
    if (skip) return w;
    g += 0.0F;  // -0 becomes what a sum would be
    if (loss_scale != 1.0F) g /= loss_scale;
    g *= factor;
    if (constants.weight_decay != 0.0F) g += constants.weight_decay * w;
    if (has_momentum) {
      m = constants.momentum * m + g;
      g = constants.nesterov ? g + constants.momentum * m : m;
    }
    return w - learning_rate * g;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    clipped_sgd_kernel(SgdOperands<T> o, SgdConstants constants, const GradientNorm* norm, std::uint32_t count) {
  constexpr int V = kPack<T>;
  const std::uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * static_cast<std::uint32_t>(V);
  if (first >= count) return;
  const Rule rule{.constants = constants,
                  .learning_rate = static_cast<float>(o.scalars->learning_rate),
                  .loss_scale = static_cast<float>(o.scalars->loss_scale),
                  .factor = static_cast<float>(norm->factor),
                  .skip = o.scalars->skip_update != 0 || !isfinite(norm->factor),
                  .has_momentum = o.momentum != nullptr};
  if (first + V <= count) {
    Pack<T, V> weight = load<V>(o.weight + first);
    const Pack<T, V> gradient = load<V>(o.gradient + first);
    Pack<T, V> momentum = rule.has_momentum ? load<V>(o.momentum + first) : weight;
    Pack<T, V> zero;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      zero.at[v] = narrow<T>(0.0F);
      float m = rule.has_momentum ? widen(momentum.at[v]) : 0.0F;
      weight.at[v] = narrow<T>(rule(widen(weight.at[v]), widen(gradient.at[v]), m));
      momentum.at[v] = narrow<T>(m);
    }
    store<V>(o.new_weight + first, weight);
    store<V>(o.cleared_gradient + first, zero);
    if (rule.has_momentum) store<V>(o.new_momentum + first, momentum);
    return;
  }
  for (std::uint32_t i = first; i < count; ++i) {
    float m = rule.has_momentum ? widen(o.momentum[i]) : 0.0F;
    const float w = rule(widen(o.weight[i]), widen(o.gradient[i]), m);
    o.new_weight[i] = narrow<T>(w);
    o.cleared_gradient[i] = narrow<T>(0.0F);
    if (rule.has_momentum) o.new_momentum[i] = narrow<T>(m);
  }
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

template <typename T>
void clipped_sgd(cudaStream_t stream, const SgdOperands<T>& operands, SgdConstants constants, const GradientNorm* norm,
                 std::int64_t count) {
  clipped_sgd_kernel<<<blocks_for(count, kThreads * kPack<T>), kThreads, 0, stream>>>(operands, constants, norm,
                                                                                      static_cast<std::uint32_t>(count));
  check_launch("cuda_clipped_sgd");
}

template void sum_of_squares(cudaStream_t, const float*, const double*, double*, double*, std::int64_t);
template void sum_of_squares(cudaStream_t, const __half*, const double*, double*, double*, std::int64_t);
template void clipped_sgd(cudaStream_t, const SgdOperands<float>&, SgdConstants, const GradientNorm*, std::int64_t);
template void clipped_sgd(cudaStream_t, const SgdOperands<__half>&, SgdConstants, const GradientNorm*, std::int64_t);

}  // namespace snug::backends::cuda::launch
