#include "backends/cpu/simd_loops.h"

// The update; see simd_loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd_sgd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd_philox-inl.h"
#include "backends/cpu/simd_storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

template <typename D>
using WordsOf = hn::Vec<hn::Rebind<std::uint32_t, D>>;

// Rounded by chance: a random number below the distance of two neighbours is added to what is cut off. `random`: 16 bits.
template <typename D>
HWY_INLINE void store_randomly(hn::Vec<D> value, WordsOf<D> random, D d, Bfloat16* to) {
  const hn::Rebind<std::uint32_t, D> words;
  const auto bits = hn::BitCast(words, value);
  const auto is_nan = hn::RebindMask(words, hn::IsNaN(value));
  store_upper_halves(hn::IfThenElse(is_nan, hn::Or(bits, hn::Set(words, 0x400000U)), hn::Add(bits, random)), d, to);
}

template <typename D>
HWY_INLINE void store_randomly(hn::Vec<D> value, WordsOf<D> random, D d, Half* to) {
  const hn::Rebind<std::uint32_t, D> words;
  const hn::Rebind<std::int32_t, D> integers;
  const auto magnitude = hn::Abs(value);
  // A normal half drops 13 of a float's bits. Below these, halves are the multiples of 2^-24.
  const auto raised = hn::Add(hn::BitCast(words, magnitude), hn::ShiftRight<3>(random));
  const auto normal = hn::BitCast(d, hn::And(raised, hn::Set(words, 0xFFFFE000U)));
  const auto chance = hn::Mul(hn::ConvertTo(d, hn::BitCast(integers, random)), hn::Set(d, 0x1p-16F));
  const auto steps = hn::Floor(hn::MulAdd(magnitude, hn::Set(d, 0x1p24F), chance));
  const auto cut = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-14F)), hn::Mul(steps, hn::Set(d, 0x1p-24F)), normal);
  store(hn::IfThenElse(hn::IsNaN(value), value, hn::CopySign(cut, value)), d, to);
}

template <typename D>
HWY_INLINE void store_randomly(hn::Vec<D> value, WordsOf<D> /*random*/, D d, float* to) {
  store(value, d, to);
}

// One vector; with `words`, one random number of 32 bits an element: the lower half for the weight, the upper for the momentum.
template <typename T, typename D>
HWY_INLINE void sgd_step(D d, const SgdRule& rule, const SgdArrays<T>& a, std::int64_t i, const std::uint32_t* words) {
  const hn::Rebind<std::uint32_t, D> integers;
  const auto random = words == nullptr ? hn::Zero(integers) : hn::LoadU(integers, words);
  const auto put = [&](hn::Vec<D> value, WordsOf<D> chance, T* to) {
    if (words == nullptr) {
      store(value, d, to);
    } else {
      store_randomly(value, chance, d, to);
    }
  };
  const auto weight = load(d, a.weight + i);
  // Plus 0: a gradient of -0 becomes what a sum would be.
  const auto gradient = hn::MulAdd(load(d, a.gradient + i), hn::Set(d, rule.gradient_scale), hn::Zero(d));
  auto step = hn::MulAdd(hn::Set(d, rule.weight_decay), weight, gradient);
  if (a.momentum != nullptr) {
    const auto moved = hn::MulAdd(hn::Set(d, rule.momentum), load(d, a.momentum + i), step);
    put(moved, hn::ShiftRight<16>(random), a.new_momentum + i);
    step = rule.nesterov ? hn::MulAdd(hn::Set(d, rule.momentum), moved, step) : moved;
  }
  const auto lower = hn::And(random, hn::Set(integers, 0xFFFFU));
  put(hn::NegMulAdd(hn::Set(d, rule.learning_rate), step, weight), lower, a.new_weight + i);
  store(hn::Zero(d), d, a.new_gradient + i);
}

template <typename T>
HWY_INLINE void sgd_loop(const SgdRule& rule, const SgdArrays<T>& a, std::int64_t first, std::int64_t count) {
  if (!rule.stochastic || std::is_same_v<T, float>) {
    for_each_vector(count, [&](auto d, std::int64_t i) { sgd_step<T>(d, rule, a, first + i, nullptr); });
    return;
  }
  HWY_ALIGN std::uint32_t words[4 * hn::MaxLanes(Words())];
  const std::int64_t drawn = 4 * lanes();
  for (std::int64_t begin = 0; begin < count; begin += drawn) {
    draw_blocks(rule.seed, static_cast<std::uint64_t>(first + begin) / 4, rule.counter_high, words);
    for_each_vector(count - begin < drawn ? count - begin : drawn,
                    [&](auto d, std::int64_t i) { sgd_step<T>(d, rule, a, first + begin + i, words + i); });
  }
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
