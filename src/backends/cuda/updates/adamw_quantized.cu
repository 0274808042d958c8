#include "backends/cuda/updates/adamw_quantized.h"
#include "backends/cuda/updates/adamw_step.cuh"
#include "backends/cuda/updates/rounding.cuh"
#include "ops/updates/block_code.h"

// A warp moves one block of codes: each lane holds its share in registers, so the largest moments are found and the codes written
// without another pass over memory.

namespace snug::backends::cuda::launch {

namespace {

constexpr unsigned kWarp = 32;
constexpr int kShare = ops::kCodeBlock / kWarp;  // elements of a lane
constexpr unsigned kEveryLane = 0xFFFFFFFFU;

__device__ const ops::BlockCode kTables[2] = {ops::kSignedCode, ops::kUnsignedCode};

// Lookups go to any place of a table, which shared memory serves best.
__device__ void copy_tables(ops::BlockCode (&tables)[2]) {
  static_assert(sizeof kTables % sizeof(std::uint32_t) == 0);
  const auto* from = reinterpret_cast<const std::uint32_t*>(kTables);
  auto* to = reinterpret_cast<std::uint32_t*>(tables);
  for (unsigned i = threadIdx.x; i < sizeof kTables / sizeof(std::uint32_t); i += kThreads) to[i] = from[i];
}

// The first `count` of a lane's elements; the others are zero, and not written.
template <typename T>
__device__ Pack<T, kShare> load_share(const T* from, int count) {
  if (count == kShare) return load<kShare>(from);
  Pack<T, kShare> pack;
#pragma unroll
  for (int i = 0; i < kShare; ++i) pack.at[i] = i < count ? from[i] : narrow<T>(0.0F);
  return pack;
}
template <typename T>
__device__ void store_share(T* to, const Pack<T, kShare>& pack, int count) {
  if (count == kShare) return store<kShare>(to, pack);
#pragma unroll
  for (int i = 0; i < kShare; ++i) {
    if (i < count) to[i] = pack.at[i];
  }
}

// The largest absolute value of a warp, for every lane. As bits, which rise with the value: NaN is above all others and stays
// visible.
__device__ float largest_of_warp(const float (&values)[kShare]) {
  unsigned largest = 0;
#pragma unroll
  for (int i = 0; i < kShare; ++i) largest = max(largest, __float_as_uint(fabsf(values[i])));
#pragma unroll
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    largest = max(largest, __shfl_xor_sync(kEveryLane, largest, distance));
  return __uint_as_float(largest);
}

__device__ Pack<std::uint8_t, kShare> codes_of(const ops::BlockCode& code, const float (&values)[kShare], float largest) {
  Pack<std::uint8_t, kShare> codes;
#pragma unroll
  for (int i = 0; i < kShare; ++i) codes.at[i] = ops::encoded(code, values[i], largest);
  return codes;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    quantized_kernel(AdamwOperands<T, std::uint8_t> o, AdamwConstants constants, const MomentPair* scales, MomentPair* new_scales,
                     std::uint32_t count) {
  __shared__ AdamwStep shared;
  __shared__ ops::BlockCode tables[2];
  const std::uint32_t thread = blockIdx.x * kThreads + threadIdx.x;
  const std::uint32_t block = thread / kWarp;
  const std::uint32_t first = thread * static_cast<std::uint32_t>(kShare);
  const int here = first >= count ? 0 : static_cast<int>(min(count - first, static_cast<std::uint32_t>(kShare)));
  const bool is_empty = block * static_cast<std::uint32_t>(ops::kCodeBlock) >= count;  // the same for all lanes of a warp
  // On their way while one thread takes the powers.
  Pack<T, kShare> weight = load_share(o.weight + first, here);
  const Pack<T, kShare> gradient = load_share(o.gradient + first, here);
  Pack<std::uint8_t, kShare> first_codes = load_share(o.first + first, here);
  Pack<std::uint8_t, kShare> second_codes = load_share(o.second + first, here);
  MomentPair scale = is_empty ? MomentPair{0.0F, 0.0F} : scales[block];
  const double factor = factor_of(o);
  const bool skip = skips_update(*o.scalars, factor);
  copy_tables(tables);
  if (threadIdx.x == 0) shared = AdamwStep(constants, *o.scalars, *o.updates, factor);
  __syncthreads();
  if (is_empty) return;
  if (!skip) {  // else no bit changes: stored values are not rounded again
    const AdamwStep step = shared;
    float m[kShare];
    float v[kShare];
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      m[i] = ops::decoded(tables[0], first_codes.at[i], scale.first);
      v[i] = ops::decoded(tables[1], second_codes.at[i], scale.second);
      float w = step(widen(weight.at[i]), widen(gradient.at[i]), m[i], v[i]);
      if constexpr (sizeof(T) == 2) {
        if (constants.stochastic) {
          const std::uint32_t word = ops::rounding_word(o.scalars->seed, o.scalars->step, constants.key, first + i);
          w = round_stochastically<T>(w, word & 0xFFFFU);
        }
      }
      weight.at[i] = narrow<T>(w);
      // What is not there takes no part: under a scale that is not finite, its moments are not.
      if (i >= here) m[i] = v[i] = 0.0F;
    }
    scale = {largest_of_warp(m), largest_of_warp(v)};
    first_codes = codes_of(tables[0], m, scale.first);
    second_codes = codes_of(tables[1], v, scale.second);
  }
  Pack<T, kShare> zero;
#pragma unroll
  for (int i = 0; i < kShare; ++i) zero.at[i] = narrow<T>(0.0F);
  store_share(o.new_weight + first, weight, here);
  store_share(o.cleared_gradient + first, zero, here);
  store_share(o.new_first + first, first_codes, here);
  store_share(o.new_second + first, second_codes, here);
  if (threadIdx.x % kWarp == 0) new_scales[block] = scale;
}

}  // namespace

template <typename T>
void adamw_quantized(cudaStream_t stream, const AdamwOperands<T, std::uint8_t>& operands, const AdamwConstants& constants,
                     const MomentPair* scales, MomentPair* new_scales, std::int64_t count) {
  quantized_kernel<<<blocks_for(count, kThreads * kShare), kThreads, 0, stream>>>(operands, constants, scales, new_scales,
                                                                                  static_cast<std::uint32_t>(count));
  check_launch("cuda_adamw_quantized");
}

template void adamw_quantized(cudaStream_t, const AdamwOperands<float, std::uint8_t>&, const AdamwConstants&, const MomentPair*,
                              MomentPair*, std::int64_t);
template void adamw_quantized(cudaStream_t, const AdamwOperands<__half, std::uint8_t>&, const AdamwConstants&, const MomentPair*,
                              MomentPair*, std::int64_t);
template void adamw_quantized(cudaStream_t, const AdamwOperands<__nv_bfloat16, std::uint8_t>&, const AdamwConstants&,
                              const MomentPair*, MomentPair*, std::int64_t);

}  // namespace snug::backends::cuda::launch
