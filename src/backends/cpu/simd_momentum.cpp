#include "backends/cpu/simd_momentum.h"

#include <cmath>
#include <limits>

#include "ops/quantised_momentum.h"

// See simd_loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd_momentum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd_rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The momentum of a vector of codes, under a scale of 1.
template <typename D>
HWY_INLINE hn::Vec<D> values_of(D d, const std::uint8_t* codes) {
  const hn::Rebind<std::int32_t, D> integers;
  const hn::Rebind<std::uint8_t, D> narrow;
  const auto shifted = hn::Add(hn::PromoteTo(integers, hn::LoadU(narrow, codes)), hn::Set(integers, ops::kZeroMomentum));
  return hn::GatherIndex(d, ops::kMomentumValues.data(), hn::And(shifted, hn::Set(integers, 255)));
}

// ops::nearest_momentum and its code.
template <typename D>
HWY_INLINE void store_codes(D d, hn::Vec<D> shares, std::uint8_t* codes) {
  const hn::Rebind<std::int32_t, D> integers;
  const hn::Rebind<std::uint8_t, D> narrow;
  auto number = hn::Zero(integers);
  for (std::int32_t step = 128; step > 0; step /= 2) {
    const auto bound = hn::GatherIndex(d, ops::kMomentumBounds.data(), hn::Add(number, hn::Set(integers, step - 1)));
    const auto is_above = hn::RebindMask(integers, hn::Gt(shares, bound));
    number = hn::Add(number, hn::IfThenElseZero(is_above, hn::Set(integers, step)));
  }
  const auto code = hn::And(hn::Sub(number, hn::Set(integers, ops::kZeroMomentum)), hn::Set(integers, 255));
  hn::StoreU(hn::DemoteTo(narrow, code), narrow, codes);
}

template <typename T>
HWY_INLINE void quantised_loop(const QuantisedSgdRule& rule, const QuantisedSgdBlock<T>& b, std::int64_t first,
                               std::int64_t count) {
  HWY_ALIGN float moved[ops::kMomentumBlock];
  HWY_ALIGN float sizes[hn::MaxLanes(Floats())] = {};
  bool has_nan = false;
  float largest = 0;
  const auto step_of = [&](auto d, std::int64_t i, const std::uint32_t* words) {
    const Chances<decltype(d)> chances(words);
    // One rounding an operation: codes must not depend on whether a machine can fuse them.
    const auto weight = load(d, b.weight + i);
    const auto gradient = hn::Add(hn::Mul(load(d, b.gradient + i), hn::Set(d, rule.gradient_scale)), hn::Zero(d));
    const auto step = hn::Add(gradient, hn::Mul(hn::Set(d, rule.weight_decay), weight));
    const auto momentum = hn::Set(d, rule.momentum);
    const auto now = hn::Add(hn::Mul(momentum, hn::Mul(values_of(d, b.codes + i), hn::Set(d, b.scale))), step);
    hn::StoreU(now, d, moved + i);
    const auto used = rule.nesterov ? hn::Add(step, hn::Mul(momentum, now)) : now;
    chances.store_weight(hn::Sub(weight, hn::Mul(hn::Set(d, rule.learning_rate), used)), d, b.new_weight + i);
    store(hn::Zero(d), d, b.new_gradient + i);
    has_nan = has_nan || !hn::AllFalse(d, hn::IsNaN(now));
    hn::StoreU(hn::Max(hn::LoadU(d, sizes), hn::Abs(now)), d, sizes);
  };
  for_each_drawn<T>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count, step_of);
  for (const float size : sizes) largest = size > largest ? size : largest;
  if (has_nan) largest = std::numeric_limits<float>::quiet_NaN();
  *b.new_scale = largest;
  for_each_vector(count, [&](auto d, std::int64_t i) {
    const auto shares = largest == 0 ? hn::Zero(d) : hn::Div(hn::LoadU(d, moved + i), hn::Set(d, largest));
    store_codes(d, shares, b.new_codes + i);
  });
}

template <typename T>
HWY_INLINE void combine_loop(const Combination<T>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
                             std::int64_t count) {
  const auto step = [&](auto d, std::int64_t i, const std::uint32_t* words) {
    const Chances<decltype(d)> chances(words);
    const auto scaled = hn::Mul(hn::Set(d, a), load(d, arrays.one + first + i));
    const auto sum = hn::MulAdd(hn::Set(d, b), load(d, arrays.other + first + i), scaled);
    if (arrays.is_weight) {
      chances.store_weight(sum, d, arrays.out + first + i);
    } else {
      chances.store_momentum(sum, d, arrays.out + first + i);
    }
  };
  for_each_drawn<T>(rounding.stochastic, rounding.seed, rounding.counter_high, rounding.first_element + first, count, step);
}

void sgd_quantised_f32(const QuantisedSgdRule& rule, const QuantisedSgdBlock<float>& block, std::int64_t first,
                       std::int64_t count) {
  quantised_loop(rule, block, first, count);
}
void combine_f32(const Combination<float>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
                 std::int64_t count) {
  combine_loop(arrays, a, b, rounding, first, count);
}
void sgd_quantised_bf16(const QuantisedSgdRule& rule, const QuantisedSgdBlock<Bfloat16>& block, std::int64_t first,
                        std::int64_t count) {
  quantised_loop(rule, block, first, count);
}
void combine_bf16(const Combination<Bfloat16>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
                  std::int64_t count) {
  combine_loop(arrays, a, b, rounding, first, count);
}
void sgd_quantised_f16(const QuantisedSgdRule& rule, const QuantisedSgdBlock<Half>& block, std::int64_t first,
                       std::int64_t count) {
  quantised_loop(rule, block, first, count);
}
void combine_f16(const Combination<Half>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
                 std::int64_t count) {
  combine_loop(arrays, a, b, rounding, first, count);
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(sgd_quantised_f32);
HWY_EXPORT(combine_f32);
HWY_EXPORT(sgd_quantised_bf16);
HWY_EXPORT(combine_bf16);
HWY_EXPORT(sgd_quantised_f16);
HWY_EXPORT(combine_f16);

template <>
void sgd_quantised(const QuantisedSgdRule& rule, const QuantisedSgdBlock<float>& block, std::int64_t first, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_quantised_f32)(rule, block, first, count);
}
template <>
void combine(const Combination<float>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
             std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(combine_f32)(arrays, a, b, rounding, first, count);
}
template <>
void sgd_quantised(const QuantisedSgdRule& rule, const QuantisedSgdBlock<Bfloat16>& block, std::int64_t first,
                   std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_quantised_bf16)(rule, block, first, count);
}
template <>
void combine(const Combination<Bfloat16>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
             std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(combine_bf16)(arrays, a, b, rounding, first, count);
}
template <>
void sgd_quantised(const QuantisedSgdRule& rule, const QuantisedSgdBlock<Half>& block, std::int64_t first, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_quantised_f16)(rule, block, first, count);
}
template <>
void combine(const Combination<Half>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
             std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(combine_f16)(arrays, a, b, rounding, first, count);
}

}  // namespace snug::backends::cpu::simd
#endif
