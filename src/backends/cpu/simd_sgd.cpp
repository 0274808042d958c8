#include "backends/cpu/simd_loops.h"

// The update; see simd_loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd_sgd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd_rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

template <typename T, typename D>
HWY_INLINE void sgd_step(D d, const SgdRule& rule, const SgdArrays<T>& a, std::int64_t i, const Chances<D>& chances) {
  const auto weight = load(d, a.weight + i);
  // Plus 0: a gradient of -0 becomes what a sum would be.
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
HWY_INLINE void sgd_loop(const SgdRule& rule, const SgdArrays<T>& a, std::int64_t first, std::int64_t count) {
  for_each_drawn<T>(rule.stochastic, rule.seed, rule.counter_high, first, count,
                    [&](auto d, std::int64_t i, const std::uint32_t* words) {
                      sgd_step<T>(d, rule, a, first + i, Chances<decltype(d)>(words));
                    });
}

void sgd_f32(const SgdRule& rule, const SgdArrays<float>& arrays, std::int64_t first, std::int64_t count) {
  sgd_loop(rule, arrays, first, count);
}
void sgd_bf16(const SgdRule& rule, const SgdArrays<Bfloat16>& arrays, std::int64_t first, std::int64_t count) {
  sgd_loop(rule, arrays, first, count);
}
void sgd_f16(const SgdRule& rule, const SgdArrays<Half>& arrays, std::int64_t first, std::int64_t count) {
  sgd_loop(rule, arrays, first, count);
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(sgd_f32);
HWY_EXPORT(sgd_bf16);
HWY_EXPORT(sgd_f16);

template <>
void sgd(const SgdRule& rule, const SgdArrays<float>& arrays, std::int64_t first, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_f32)(rule, arrays, first, count);
}
template <>
void sgd(const SgdRule& rule, const SgdArrays<Bfloat16>& arrays, std::int64_t first, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_bf16)(rule, arrays, first, count);
}
template <>
void sgd(const SgdRule& rule, const SgdArrays<Half>& arrays, std::int64_t first, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_f16)(rule, arrays, first, count);
}

}  // namespace snug::backends::cpu::simd
#endif
