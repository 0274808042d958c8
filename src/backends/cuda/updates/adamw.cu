#include "backends/cuda/updates/adamw.h"
#include "backends/cuda/updates/adamw_step.cuh"
#include "backends/cuda/updates/rounding.cuh"

namespace snug::backends::cuda::launch {

namespace {

// Rounds an element's weight and moments as they are stored; both moments with the same random number.
template <typename T, typename M>
struct Rounding {
  bool stochastic;
  std::uint64_t seed, step, key;

  __device__ void operator()(std::uint32_t element, float w, float m, float v, T& weight, M& first, M& second) const {
    if constexpr (sizeof(T) == 2) {
      if (stochastic) {
        const std::uint32_t word = ops::rounding_word(seed, step, key, element);
        w = round_stochastically<T>(w, word & 0xFFFFU);
        if constexpr (sizeof(M) == 2) {
          m = round_stochastically<M>(m, word >> 16U);
          v = round_stochastically<M>(v, word >> 16U);
        }
      }
    }
    weight = narrow<T>(w);
    first = narrow<M>(m);
    second = narrow<M>(v);
  }
};

template <typename T, typename M>
__global__ void __launch_bounds__(kThreads) adamw_kernel(AdamwOperands<T, M> o, AdamwConstants constants, std::uint32_t count) {
  constexpr int V = kPack<T>;
  __shared__ AdamwStep shared;
  const std::uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * static_cast<std::uint32_t>(V);
  const bool whole = first + V <= count;
  // On their way while one thread takes the powers.
  Pack<T, V> weight;
  Pack<T, V> gradient;
  Pack<M, V> m;
  Pack<M, V> v;
  if (whole) {
    weight = load<V>(o.weight + first);
    gradient = load<V>(o.gradient + first);
    m = load<V>(o.first + first);
    v = load<V>(o.second + first);
  }
  const double factor = factor_of(o);
  const bool skip = skips_update(*o.scalars, factor);
  if (threadIdx.x == 0) shared = AdamwStep(constants, *o.scalars, *o.updates, factor);
  __syncthreads();
  const AdamwStep step = shared;
  const Rounding<T, M> round{
      .stochastic = constants.stochastic, .seed = o.scalars->seed, .step = o.scalars->step, .key = constants.key};
  if (whole) {
    Pack<T, V> zero;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      zero.at[i] = narrow<T>(0.0F);
      if (skip) continue;  // no bit changes: stored values are not rounded again
      float new_m = widen(m.at[i]);
      float new_v = widen(v.at[i]);
      const float new_w = step(widen(weight.at[i]), widen(gradient.at[i]), new_m, new_v);
      round(first + static_cast<std::uint32_t>(i), new_w, new_m, new_v, weight.at[i], m.at[i], v.at[i]);
    }
    store<V>(o.new_weight + first, weight);
    store<V>(o.cleared_gradient + first, zero);
    store<V>(o.new_first + first, m);
    store<V>(o.new_second + first, v);
    return;
  }
  for (std::uint32_t i = first; i < count; ++i) {
    T w = o.weight[i];
    M first_moment = o.first[i];
    M second_moment = o.second[i];
    if (!skip) {
      float new_m = widen(first_moment);
      float new_v = widen(second_moment);
      const float new_w = step(widen(w), widen(o.gradient[i]), new_m, new_v);
      round(i, new_w, new_m, new_v, w, first_moment, second_moment);
    }
    o.new_weight[i] = w;
    o.cleared_gradient[i] = narrow<T>(0.0F);
    o.new_first[i] = first_moment;
    o.new_second[i] = second_moment;
  }
}

__global__ void count_kernel(const double* updates, const Scalars* scalars, const GradientNorm* norm, double* result) {
  const double factor = norm == nullptr ? 1.0 : norm->factor;
  *result = skips_update(*scalars, factor) ? *updates : *updates + 1;
}

}  // namespace

template <typename T, typename M>
void adamw(cudaStream_t stream, const AdamwOperands<T, M>& operands, const AdamwConstants& constants, std::int64_t count) {
  adamw_kernel<<<blocks_for(count, kThreads * kPack<T>), kThreads, 0, stream>>>(operands, constants,
                                                                                static_cast<std::uint32_t>(count));
  check_launch("cuda_adamw");
}

void count_update(cudaStream_t stream, const double* updates, const Scalars* scalars, const GradientNorm* norm, double* result) {
  count_kernel<<<1, 1, 0, stream>>>(updates, scalars, norm, result);
  check_launch("cuda_count_update");
}

template void adamw(cudaStream_t, const AdamwOperands<float, float>&, const AdamwConstants&, std::int64_t);
template void adamw(cudaStream_t, const AdamwOperands<__half, __half>&, const AdamwConstants&, std::int64_t);
template void adamw(cudaStream_t, const AdamwOperands<__nv_bfloat16, __nv_bfloat16>&, const AdamwConstants&, std::int64_t);
template void adamw(cudaStream_t, const AdamwOperands<__half, float>&, const AdamwConstants&, std::int64_t);
template void adamw(cudaStream_t, const AdamwOperands<__nv_bfloat16, float>&, const AdamwConstants&, std::int64_t);

}  // namespace snug::backends::cuda::launch
