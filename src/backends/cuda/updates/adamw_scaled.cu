#include "backends/cuda/updates/adamw_scaled.h"
#include "backends/cuda/updates/adamw_step.cuh"
#include "backends/cuda/updates/rounding.cuh"
#include "ops/updates/scaled_moments.h"

namespace snug::backends::cuda::launch {

namespace {

// What is not finite takes no part.
__device__ float size_of(float moment) { return isfinite(moment) ? fabsf(moment) : 0.0F; }

// Thread 0 gets the largest of the block.
__device__ MomentPair largest_of_block(MomentPair value) {
  __shared__ MomentPair shared[kThreads];
  shared[threadIdx.x] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const MomentPair other = shared[threadIdx.x + half];
      shared[threadIdx.x] = {fmaxf(shared[threadIdx.x].first, other.first), fmaxf(shared[threadIdx.x].second, other.second)};
    }
  }
  return shared[0];
}

// An element's moments before and after the step.
struct Mover {
  AdamwStep step;
  MomentPair scales;

  // The new weight; m and v become the new moments.
  __device__ float operator()(float weight, float gradient, __half first, __half second, float& m, float& v) const {
    m = widen(first) * scales.first;
    v = widen(second) * scales.second;
    return step(weight, gradient, m, v);
  }
};

// Every block takes each gridDim.x-th range of packs.
template <typename T>
__global__ void __launch_bounds__(kThreads) largest_kernel(AdamwOperands<T, __half> o, AdamwConstants constants,
                                                           const MomentPair* scales, MomentPair* largest, std::uint32_t count) {
  constexpr int V = kPack<T>;
  __shared__ AdamwStep shared;
  const double factor = factor_of(o);
  if (skips_update(*o.scalars, factor)) return;
  if (threadIdx.x == 0) shared = AdamwStep(constants, *o.scalars, *o.updates, factor);
  __syncthreads();
  const Mover move{.step = shared, .scales = *scales};
  MomentPair most{0.0F, 0.0F};
  const auto look_at = [&](T gradient, __half first, __half second) {
    float m = 0;
    float v = 0;
    move(0.0F, widen(gradient), first, second, m, v);
    most = {fmaxf(most.first, size_of(m)), fmaxf(most.second, size_of(v))};
  };
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads * V;
  for (std::uint64_t first = (std::uint64_t{blockIdx.x} * kThreads + threadIdx.x) * V; first < count; first += stride) {
    if (first + V <= count) {
      const Pack<T, V> gradient = load<V>(o.gradient + first);
      const Pack<__half, V> m = load<V>(o.first + first);
      const Pack<__half, V> v = load<V>(o.second + first);
#pragma unroll
      for (int i = 0; i < V; ++i) look_at(gradient.at[i], m.at[i], v.at[i]);
    } else {
      for (std::uint64_t i = first; i < count; ++i) look_at(o.gradient[i], o.first[i], o.second[i]);
    }
  }
  most = largest_of_block(most);
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

// The old scales are read here for the last time: the new ones may lie in their place.
__global__ void __launch_bounds__(kThreads)
    scales_kernel(const Scalars* scalars, const GradientNorm* norm, const MomentPair* scales, MomentPair* new_scales,
                  MomentScratch* scratch, std::uint32_t blocks) {
  const bool skip = skips_update(*scalars, norm == nullptr ? 1.0 : norm->factor);
  MomentPair most{0.0F, 0.0F};
  for (std::uint32_t i = threadIdx.x; i < blocks && !skip; i += kThreads)
    most = {fmaxf(most.first, scratch->largest[i].first), fmaxf(most.second, scratch->largest[i].second)};
  most = largest_of_block(most);
  if (threadIdx.x != 0) return;
  scratch->scales = *scales;
  scratch->new_scales = skip ? *scales : MomentPair{ops::moment_scale(most.first), ops::moment_scale(most.second)};
  *new_scales = scratch->new_scales;
}

// Stores an element's weight and moments; both moments are rounded with the same random number.
template <typename T>
struct Rounding {
  bool stochastic;
  std::uint64_t seed, step, key;
  MomentPair inverse;  // of the new scales

  __device__ void operator()(std::uint32_t element, float w, float m, float v, T& weight, __half& first, __half& second) const {
    m *= inverse.first;
    const bool vanishes = v > 0.0F && v * inverse.second < ops::kLeastStoredMoment;
    v = vanishes ? ops::kLeastStoredMoment : v * inverse.second;
    if (stochastic) {
      const std::uint32_t word = ops::rounding_word(seed, step, key, element);
      if constexpr (sizeof(T) == 2) w = round_stochastically<T>(w, word & 0xFFFFU);
      m = round_stochastically<__half>(m, word >> 16U);
      v = round_stochastically<__half>(v, word >> 16U);
    }
    weight = narrow<T>(w);
    first = narrow<__half>(m);
    second = narrow<__half>(v);
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    step_kernel(AdamwOperands<T, __half> o, AdamwConstants constants, const MomentScratch* scratch, std::uint32_t count) {
  constexpr int V = kPack<T>;
  __shared__ AdamwStep shared;
  const std::uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * static_cast<std::uint32_t>(V);
  const bool whole = first + V <= count;
  // On their way while one thread takes the powers.
  Pack<T, V> weight;
  Pack<T, V> gradient;
  Pack<__half, V> m;
  Pack<__half, V> v;
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
  const Mover move{.step = shared, .scales = scratch->scales};
  const Rounding<T> round{.stochastic = constants.stochastic,
                          .seed = o.scalars->seed,
                          .step = o.scalars->step,
                          .key = constants.key,
                          .inverse = {1.0F / scratch->new_scales.first, 1.0F / scratch->new_scales.second}};
  const auto update = [&](std::uint32_t element, T& w, T g, __half& first_moment, __half& second_moment) {
    if (skip) return;  // no bit changes: stored values are not rounded again
    float new_m = 0;
    float new_v = 0;
    const float new_w = move(widen(w), widen(g), first_moment, second_moment, new_m, new_v);
    round(element, new_w, new_m, new_v, w, first_moment, second_moment);
  };
  if (whole) {
    Pack<T, V> zero;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      zero.at[i] = narrow<T>(0.0F);
      update(first + static_cast<std::uint32_t>(i), weight.at[i], gradient.at[i], m.at[i], v.at[i]);
    }
    store<V>(o.new_weight + first, weight);
    store<V>(o.cleared_gradient + first, zero);
    store<V>(o.new_first + first, m);
    store<V>(o.new_second + first, v);
    return;
  }
  for (std::uint32_t i = first; i < count; ++i) {
    T w = o.weight[i];
    __half first_moment = o.first[i];
    __half second_moment = o.second[i];
    update(i, w, o.gradient[i], first_moment, second_moment);
    o.new_weight[i] = w;
    o.cleared_gradient[i] = narrow<T>(0.0F);
    o.new_first[i] = first_moment;
    o.new_second[i] = second_moment;
  }
}

}  // namespace

template <typename T>
void adamw_scaled(cudaStream_t stream, const AdamwOperands<T, __half>& operands, const AdamwConstants& constants,
                  const MomentPair* scales, MomentPair* new_scales, MomentScratch* scratch, std::int64_t count) {
  const std::uint32_t blocks = blocks_of_moments(count);
  const auto elements = static_cast<std::uint32_t>(count);
  largest_kernel<<<blocks, kThreads, 0, stream>>>(operands, constants, scales, scratch->largest, elements);
  scales_kernel<<<1, kThreads, 0, stream>>>(operands.scalars, operands.norm, scales, new_scales, scratch, blocks);
  step_kernel<<<blocks_for(count, kThreads * kPack<T>), kThreads, 0, stream>>>(operands, constants, scratch, elements);
  check_launch("cuda_adamw_scaled");
}

template void adamw_scaled(cudaStream_t, const AdamwOperands<float, __half>&, const AdamwConstants&, const MomentPair*,
                           MomentPair*, MomentScratch*, std::int64_t);
template void adamw_scaled(cudaStream_t, const AdamwOperands<__half, __half>&, const AdamwConstants&, const MomentPair*,
                           MomentPair*, MomentScratch*, std::int64_t);
template void adamw_scaled(cudaStream_t, const AdamwOperands<__nv_bfloat16, __half>&, const AdamwConstants&, const MomentPair*,
                           MomentPair*, MomentScratch*, std::int64_t);

}  // namespace snug::backends::cuda::launch
