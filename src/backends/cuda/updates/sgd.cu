#include "backends/cuda/updates/rounding.cuh"
#include "backends/cuda/updates/sgd.h"

namespace snug::backends::cuda::launch {

namespace {

// What an element's update needs, read once per thread from the blocks that change between steps.
struct Rule {
  SgdConstants constants;
  float learning_rate, loss_scale, factor;
  bool skip, has_momentum, has_factor;

  // The new weight by the rule of ops/updates/sgd.cpp, in float; `m` becomes the new momentum.
  __device__ float operator()(float w, float g, float& m) const {
    if (skip) return w;
    g += 0.0F;  // -0 becomes +0, as in a sum
    if (loss_scale != 1.0F) g /= loss_scale;
    if (has_factor) g *= factor;
    if (constants.weight_decay != 0.0F) g += constants.weight_decay * w;
    if (has_momentum) {
      m = constants.momentum * m + g;
      g = constants.nesterov ? g + constants.momentum * m : m;
    }
    return w - learning_rate * g;
  }
};

// Rounds an element's weight and momentum as they are stored.
template <typename T>
struct Rounding {
  bool stochastic;
  std::uint64_t seed, step, key;

  __device__ void operator()(std::uint32_t element, float weight, float momentum, T& new_weight, T& new_momentum) const {
    if constexpr (sizeof(T) == 2) {
      if (stochastic) {
        const std::uint32_t word = ops::rounding_word(seed, step, key, element);
        weight = round_stochastically<T>(weight, word & 0xFFFFU);
        momentum = round_stochastically<T>(momentum, word >> 16U);
      }
    }
    new_weight = narrow<T>(weight);
    new_momentum = narrow<T>(momentum);
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) sgd_kernel(SgdOperands<T> o, SgdConstants constants, std::uint32_t count) {
  constexpr int V = kPack<T>;
  const std::uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * static_cast<std::uint32_t>(V);
  if (first >= count) return;
  const double factor = o.norm == nullptr ? 1.0 : o.norm->factor;
  const Rule rule{.constants = constants,
                  .learning_rate = static_cast<float>(o.scalars->learning_rate),
                  .loss_scale = static_cast<float>(o.scalars->loss_scale),
                  .factor = static_cast<float>(factor),
                  .skip = o.scalars->skip_update != 0 || !isfinite(factor),
                  .has_momentum = o.momentum != nullptr,
                  .has_factor = o.norm != nullptr};
  // A skipped step changes no bit: stored values are not rounded again.
  const Rounding<T> round{
      .stochastic = constants.stochastic && !rule.skip, .seed = o.scalars->seed, .step = o.scalars->step, .key = constants.key};
  if (first + V <= count) {
    Pack<T, V> weight = load<V>(o.weight + first);
    const Pack<T, V> gradient = load<V>(o.gradient + first);
    Pack<T, V> momentum = rule.has_momentum ? load<V>(o.momentum + first) : weight;
    Pack<T, V> zero;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      zero.at[v] = narrow<T>(0.0F);
      float m = rule.has_momentum ? widen(momentum.at[v]) : 0.0F;
      const float w = rule(widen(weight.at[v]), widen(gradient.at[v]), m);
      round(first + static_cast<std::uint32_t>(v), w, m, weight.at[v], momentum.at[v]);
    }
    store<V>(o.new_weight + first, weight);
    store<V>(o.cleared_gradient + first, zero);
    if (rule.has_momentum) store<V>(o.new_momentum + first, momentum);
    return;
  }
  for (std::uint32_t i = first; i < count; ++i) {
    float m = rule.has_momentum ? widen(o.momentum[i]) : 0.0F;
    const float w = rule(widen(o.weight[i]), widen(o.gradient[i]), m);
    T momentum = narrow<T>(m);
    round(i, w, m, o.new_weight[i], momentum);
    o.cleared_gradient[i] = narrow<T>(0.0F);
    if (rule.has_momentum) o.new_momentum[i] = momentum;
  }
}

}  // namespace

template <typename T>
void sgd(cudaStream_t stream, const SgdOperands<T>& operands, SgdConstants constants, std::int64_t count) {
  sgd_kernel<<<blocks_for(count, kThreads * kPack<T>), kThreads, 0, stream>>>(operands, constants,
                                                                              static_cast<std::uint32_t>(count));
  check_launch("cuda_sgd");
}

template void sgd(cudaStream_t, const SgdOperands<float>&, SgdConstants, std::int64_t);
template void sgd(cudaStream_t, const SgdOperands<__half>&, SgdConstants, std::int64_t);
template void sgd(cudaStream_t, const SgdOperands<__nv_bfloat16>&, SgdConstants, std::int64_t);

}  // namespace snug::backends::cuda::launch
