#include "backends/cuda/updates/adamw.h"
#include "backends/cuda/updates/rounding.cuh"

namespace snug::backends::cuda::launch {

namespace {

__device__ bool skips(const Scalars& scalars, double factor) { return scalars.skip_update != 0 || !isfinite(factor); }

// ops::AdamwStep, in float: the same for every element of a step.
struct Coefficients {
  float first_decay, second_decay, epsilon, keeps, rate, second_bias, gradient_scale;

  Coefficients() = default;
  __device__ Coefficients(const AdamwConstants& c, const Scalars& scalars, double updates, double factor)
      : first_decay(static_cast<float>(c.first_decay)),
        second_decay(static_cast<float>(c.second_decay)),
        epsilon(static_cast<float>(c.epsilon)),
        keeps(static_cast<float>(1 - scalars.learning_rate * c.weight_decay)),
        rate(static_cast<float>(scalars.learning_rate / (1 - pow(c.first_decay, updates)))),
        second_bias(static_cast<float>(sqrt(1 - pow(c.second_decay, updates)))),
        gradient_scale(static_cast<float>(factor / scalars.loss_scale)) {}

  // The new weight; m and v become the new moments. One rounding per operation.
  __device__ float operator()(float w, float gradient, float& m, float& v) const {
    const float g = gradient * gradient_scale;
    m = first_decay * m + (1.0F - first_decay) * g;
    v = second_decay * v + (1.0F - second_decay) * g * g;
    return w * keeps - rate * (m / (sqrtf(v) / second_bias + epsilon));
  }
};

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
  __shared__ Coefficients shared;
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
  const double factor = o.norm == nullptr ? 1.0 : o.norm->factor;
  const bool skip = skips(*o.scalars, factor);
  if (threadIdx.x == 0) shared = Coefficients(constants, *o.scalars, *o.updates, factor);
  __syncthreads();
  const Coefficients step = shared;
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
  *result = skips(*scalars, factor) ? *updates : *updates + 1;
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

}  // namespace snug::backends::cuda::launch
