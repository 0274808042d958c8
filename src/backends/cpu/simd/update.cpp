#include "backends/cpu/simd/update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/updates/quantized_momentum.h"
#include "ops/updates/scaled_moments.h"

// See loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd/rounding-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, typename D>
HWY_INLINE void sgd_step(D d, const UpdateRule& rule, const SgdArrays<T>& a, std::int64_t i, const Chances<D>& chances) {
  const auto weight = load(d, a.weight + i);
  // Plus 0: a gradient of -0 becomes +0, as in a sum.
  const auto gradient = hn::MulAdd(load(d, a.gradient + i), hn::Set(d, rule.gradient_scale), hn::Zero(d));
  auto step = hn::MulAdd(hn::Set(d, rule.weight_decay), weight, gradient);
  if (a.momentum != nullptr) {
    const auto moved = hn::MulAdd(hn::Set(d, rule.momentum), load(d, a.momentum + i), step);
    chances.store_momentum(moved, d, a.new_momentum + i);
    step = rule.nesterov ? hn::MulAdd(hn::Set(d, rule.momentum), moved, step) : moved;
  }
  chances.store_weight(hn::NegMulAdd(hn::Set(d, rule.learning_rate), step, weight), d, a.new_weight + i);
  store(hn::Zero(d), d, a.new_gradient + i);
}

template <typename T>
void sgd(const UpdateRule& rule, const SgdArrays<T>& a, std::int64_t first, std::int64_t count) {
  for_each_drawn<T>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count,
                    [&](auto d, std::int64_t i, const std::uint32_t* words) {
                      sgd_step<T>(d, rule, a, first + i, Chances<decltype(d)>(words));
                    });
}

// What an element's moments become, by a gradient that is scaled already.
template <typename D>
struct Moments {
  Moments(D d, const AdamwRule& rule, hn::Vec<D> gradient, hn::Vec<D> old_first, hn::Vec<D> old_second)
      : first(hn::Add(hn::Mul(hn::Set(d, rule.first_decay), old_first), hn::Mul(hn::Set(d, 1 - rule.first_decay), gradient))),
        second(hn::Add(hn::Mul(hn::Set(d, rule.second_decay), old_second),
                       hn::Mul(hn::Mul(hn::Set(d, 1 - rule.second_decay), gradient), gradient))) {}

  hn::Vec<D> first, second;
};

// Moments that are read from their places, times scales.
template <typename T, typename M, typename D>
HWY_INLINE Moments<D> moved_moments(D d, const AdamwRule& rule, const AdamwArrays<T, M>& a, MomentPair scales, std::int64_t i) {
  return {d, rule, hn::Mul(load(d, a.gradient + i), hn::Set(d, rule.gradient_scale)),
          hn::Mul(load(d, a.first + i), hn::Set(d, scales.first)), hn::Mul(load(d, a.second + i), hn::Set(d, scales.second))};
}

template <typename D>
HWY_INLINE hn::Vec<D> adamw_weight(D d, const AdamwRule& rule, const Moments<D>& moved, hn::Vec<D> weight) {
  const auto length = hn::Add(hn::Div(hn::Sqrt(moved.second), hn::Set(d, rule.second_bias)), hn::Set(d, rule.epsilon));
  const auto step = hn::Mul(hn::Set(d, rule.rate), hn::Div(moved.first, length));
  return hn::Sub(hn::Mul(weight, hn::Set(d, rule.keeps)), step);
}

template <typename T, typename M>
void adamw(const AdamwRule& rule, const AdamwArrays<T, M>& a, std::int64_t first, std::int64_t count) {
  const auto step = [&](auto d, std::int64_t k, const std::uint32_t* words) {
    const std::int64_t i = first + k;
    const Chances<decltype(d)> chances(words);
    const auto moved = moved_moments(d, rule, a, {1, 1}, i);
    chances.store_weight(adamw_weight(d, rule, moved, load(d, a.weight + i)), d, a.new_weight + i);
    chances.store_momentum(moved.first, d, a.new_first + i);
    chances.store_momentum(moved.second, d, a.new_second + i);
    store(hn::Zero(d), d, a.new_gradient + i);
  };
  for_each_drawn<T>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count, step);
}

template <typename T>
MomentPair largest_moments(const AdamwRule& rule, const AdamwArrays<T, Half>& a, MomentPair scales, std::int64_t first,
                           std::int64_t count) {
  const Floats wide;
  auto first_sizes = hn::Zero(wide), second_sizes = hn::Zero(wide);
  MomentPair rest{0, 0};
  const auto size = [](auto d, auto moment) { return hn::IfThenElse(hn::IsFinite(moment), hn::Abs(moment), hn::Zero(d)); };
  for_each_vector(count, [&](auto d, std::int64_t k) {
    const auto moved = moved_moments(d, rule, a, scales, first + k);
    if constexpr (std::is_same_v<decltype(d), Floats>) {
      first_sizes = hn::Max(first_sizes, size(d, moved.first));
      second_sizes = hn::Max(second_sizes, size(d, moved.second));
    } else {
      rest.first = std::max(rest.first, hn::GetLane(size(d, moved.first)));
      rest.second = std::max(rest.second, hn::GetLane(size(d, moved.second)));
    }
  });
  return {.first = std::max(rest.first, hn::GetLane(hn::MaxOfLanes(wide, first_sizes))),
          .second = std::max(rest.second, hn::GetLane(hn::MaxOfLanes(wide, second_sizes)))};
}

template <typename T>
void adamw_scaled(const AdamwRule& rule, const AdamwArrays<T, Half>& a, MomentPair scales, MomentPair new_scales,
                  std::int64_t first, std::int64_t count) {
  const float first_inverse = 1 / new_scales.first, second_inverse = 1 / new_scales.second;  // exact: powers of two
  const auto step = [&](auto d, std::int64_t k, const std::uint32_t* words) {
    const std::int64_t i = first + k;
    const Chances<decltype(d)> chances(words);
    const auto moved = moved_moments(d, rule, a, scales, i);
    chances.store_weight(adamw_weight(d, rule, moved, load(d, a.weight + i)), d, a.new_weight + i);
    chances.store_momentum(hn::Mul(moved.first, hn::Set(d, first_inverse)), d, a.new_first + i);
    const auto second = hn::Mul(moved.second, hn::Set(d, second_inverse));
    const auto least = hn::Set(d, ops::kLeastStoredMoment);
    const auto vanishes = hn::And(hn::Gt(moved.second, hn::Zero(d)), hn::Lt(second, least));
    chances.store_momentum(hn::IfThenElse(vanishes, least, second), d, a.new_second + i);
    store(hn::Zero(d), d, a.new_gradient + i);
  };
  // Moments are drawn for beside a weight in floats, too.
  for_each_drawn<Half>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count, step);
}

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
void sgd_quantized(const UpdateRule& rule, const QuantizedSgdBlock<T>& b, std::int64_t first, std::int64_t count) {
  HWY_ALIGN float moved[ops::kMomentumBlock];
  HWY_ALIGN float sizes[hn::MaxLanes(Floats())] = {};
  bool has_nan = false;
  float largest = 0;
  const auto step_of = [&](auto d, std::int64_t i, const std::uint32_t* words) {
    const Chances<decltype(d)> chances(words);
    // One rounding per operation: codes must not depend on whether a machine has fused multiply-add.
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
void combine(const Combination<T>& arrays, float a, float b, const Rounding& rounding, std::int64_t first, std::int64_t count) {
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

template <typename T>
constexpr UpdateLoops<T> kUpdateLoops{.sgd = sgd<T>,
                                      .adamw = adamw<T, T>,
                                      .adamw_with_floats = adamw<T, float>,
                                      .largest_moments = largest_moments<T>,
                                      .adamw_scaled = adamw_scaled<T>,
                                      .sgd_quantized = sgd_quantized<T>,
                                      .combine = combine<T>};

SNUG_DEFINE_TABLES(UpdateLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(UpdateLoops, update_loops)

}  // namespace snug::backends::cpu::simd
#endif
