#include "backends/cpu/simd_momentum.h"

#include <cmath>
#include <limits>

#include "ops/quantised_momentum.h"

// See simd_loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd_momentum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using BlockFloats = hn::ScalableTag<float>;
using BlockFloat = hn::CappedTag<float, 1>;

template <typename Body>
HWY_INLINE void for_each_in_block(std::int64_t count, const Body& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(BlockFloats()));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(BlockFloats(), i);
  for (; i < count; ++i) body(BlockFloat(), i);
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

void sgd_quantised_f32(const QuantisedSgdRule& rule, const QuantisedSgdBlock& b, std::int64_t count) {
  HWY_ALIGN float moved[ops::kMomentumBlock];
  HWY_ALIGN float sizes[hn::MaxLanes(BlockFloats())] = {};
  bool has_nan = false;
  float largest = 0;
  // One rounding an operation: codes must not depend on whether a machine can fuse them.
  for_each_in_block(count, [&](auto d, std::int64_t i) {
    const auto weight = hn::LoadU(d, b.weight + i);
    const auto gradient = hn::Add(hn::Mul(hn::LoadU(d, b.gradient + i), hn::Set(d, rule.gradient_scale)), hn::Zero(d));
    const auto step = hn::Add(gradient, hn::Mul(hn::Set(d, rule.weight_decay), weight));
    const auto momentum = hn::Set(d, rule.momentum);
    const auto now = hn::Add(hn::Mul(momentum, hn::Mul(values_of(d, b.codes + i), hn::Set(d, b.scale))), step);
    hn::StoreU(now, d, moved + i);
    const auto used = rule.nesterov ? hn::Add(step, hn::Mul(momentum, now)) : now;
    hn::StoreU(hn::Sub(weight, hn::Mul(hn::Set(d, rule.learning_rate), used)), d, b.new_weight + i);
    hn::StoreU(hn::Zero(d), d, b.new_gradient + i);
    has_nan = has_nan || !hn::AllFalse(d, hn::IsNaN(now));
    hn::StoreU(hn::Max(hn::LoadU(d, sizes), hn::Abs(now)), d, sizes);
  });
  for (const float size : sizes) largest = size > largest ? size : largest;
  if (has_nan) largest = std::numeric_limits<float>::quiet_NaN();
  *b.new_scale = largest;
  for_each_in_block(count, [&](auto d, std::int64_t i) {
    const auto shares = largest == 0 ? hn::Zero(d) : hn::Div(hn::LoadU(d, moved + i), hn::Set(d, largest));
    store_codes(d, shares, b.new_codes + i);
  });
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(sgd_quantised_f32);

void sgd_quantised(const QuantisedSgdRule& rule, const QuantisedSgdBlock& block, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_quantised_f32)(rule, block, count);
}

}  // namespace snug::backends::cpu::simd
#endif
