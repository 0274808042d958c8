// Stochastic rounding to 16 bits; for files that Highway compiles once for each instruction set.
#if defined(SNUG_SIMD_ROUNDING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_SIMD_ROUNDING_INL_H
#undef SNUG_SIMD_ROUNDING_INL_H
#else
#define SNUG_SIMD_ROUNDING_INL_H
#endif

#include <type_traits>

#include <hwy/highway.h>

#include "backends/cpu/simd/philox-inl.h"
#include "backends/cpu/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename D>
using WordsOf = hn::Vec<hn::Rebind<std::uint32_t, D>>;

// Stochastically rounded: a random number below the distance of two neighbors is added before the cut. `random`: 16 bits.
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
  // A normal half drops 13 of a float's bits. Subnormal halves are the multiples of 2^-24.
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

// One vector's 32 random bits per element, as in ops::rounding_word: the lower halves are for weights, the upper ones for
// momenta. Without words, rounds to nearest.
template <typename D>
struct Chances {
  explicit Chances(const std::uint32_t* words) : stochastic(words != nullptr) {
    const hn::Rebind<std::uint32_t, D> integers;
    drawn = stochastic ? hn::LoadU(integers, words) : hn::Zero(integers);
  }

  template <typename T>
  HWY_INLINE void store_weight(hn::Vec<D> value, D d, T* to) const {
    put(value, hn::And(drawn, hn::Set(hn::Rebind<std::uint32_t, D>(), 0xFFFFU)), d, to);
  }
  template <typename T>
  HWY_INLINE void store_momentum(hn::Vec<D> value, D d, T* to) const {
    put(value, hn::ShiftRight<16>(drawn), d, to);
  }

  template <typename T>
  HWY_INLINE void put(hn::Vec<D> value, WordsOf<D> chance, D d, T* to) const {
    if (stochastic) {
      store_randomly(value, chance, d, to);
    } else {
      store(value, d, to);
    }
  }

  WordsOf<D> drawn;
  bool stochastic;
};

// body(tag, i, words) for the vectors of elements [first, first + count) of T, with the random numbers of those from i on; null
// where nothing is drawn. `first` is a multiple of 4.
template <typename T, typename Body>
HWY_INLINE void for_each_drawn(bool stochastic, std::uint64_t seed, std::uint64_t counter_high, std::int64_t first,
                               std::int64_t count, const Body& body) {
  if (!stochastic || std::is_same_v<T, float>) {
    for_each_vector(count, [&](auto d, std::int64_t i) { body(d, i, static_cast<const std::uint32_t*>(nullptr)); });
    return;
  }
  HWY_ALIGN std::uint32_t words[4 * hn::MaxLanes(Words())];
  const std::int64_t drawn = 4 * lanes();
  for (std::int64_t begin = 0; begin < count; begin += drawn) {
    draw_blocks(seed, static_cast<std::uint64_t>(first + begin) / 4, counter_high, words);
    for_each_vector(count - begin < drawn ? count - begin : drawn,
                    [&](auto d, std::int64_t i) { body(d, begin + i, static_cast<const std::uint32_t*>(words + i)); });
  }
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
