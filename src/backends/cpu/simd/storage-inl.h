// Vectors of floats from and to what is stored; for files that Highway compiles once for each instruction set.
#if defined(SNUG_SIMD_STORAGE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_SIMD_STORAGE_INL_H
#undef SNUG_SIMD_STORAGE_INL_H
#else
#define SNUG_SIMD_STORAGE_INL_H
#endif

#include <hwy/highway.h>

#include "backends/cpu/storage.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Single = hn::CappedTag<float, 1>;

HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }

// Calls body(tag, i) for every vector of a range, and with single floats for what is left.
template <typename Body>
HWY_INLINE void for_each_vector(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + lanes() <= count; i += lanes()) body(Floats(), i);
  for (; i < count; ++i) body(Single(), i);
}

template <typename D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <typename D>
HWY_INLINE hn::Vec<D> load(D d, const Bfloat16* from) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::Rebind<std::uint32_t, D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

template <typename D>
HWY_INLINE hn::Vec<D> load(D d, const Half* from) {
  const hn::Rebind<hwy::float16_t, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from)));
}

// The bits of the nearest bfloat16 in the upper halves; the lower ones must be dropped.
template <typename D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, D>> nearest_bfloat(D /*d*/, hn::Vec<D> value) {
  const hn::Rebind<std::uint32_t, D> words;
  const auto bits = hn::BitCast(words, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7FFFU)));
  // A NaN stays NaN, for any payload.
  return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(value)), hn::Or(bits, hn::Set(words, 0x400000U)), rounded);
}

template <typename D>
HWY_INLINE void store_upper_halves(hn::Vec<hn::Rebind<std::uint32_t, D>> bits, D /*d*/, Bfloat16* to) {
  const hn::Rebind<std::uint16_t, D> narrow;
  hn::StoreU(hn::TruncateTo(narrow, hn::ShiftRight<16>(bits)), narrow, reinterpret_cast<std::uint16_t*>(to));
}

// Highway's own conversion to halves rounds to nearest where the processor has an instruction for it.
template <typename D>
HWY_INLINE hn::Vec<hn::Rebind<hwy::float16_t, D>> nearest_half(D d, hn::Vec<D> value) {
  const hn::Rebind<hwy::float16_t, D> narrow;
#if HWY_TARGET <= HWY_AVX2
  (void)d;
  return hn::DemoteTo(narrow, value);
#else
  float numbers[hn::MaxLanes(D())];
  std::uint16_t halves[hn::MaxLanes(D())];
  hn::StoreU(value, d, numbers);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) halves[i] = half_from_double(numbers[i]);
  return hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(halves));
#endif
}

// Rounded to nearest, ties to even.
template <typename D>
HWY_INLINE void store(hn::Vec<D> value, D d, float* to) {
  hn::StoreU(value, d, to);
}

template <typename D>
HWY_INLINE void store(hn::Vec<D> value, D d, Bfloat16* to) {
  store_upper_halves(nearest_bfloat(d, value), d, to);
}

template <typename D>
HWY_INLINE void store(hn::Vec<D> value, D d, Half* to) {
  const hn::Rebind<hwy::float16_t, D> narrow;
  hn::StoreU(nearest_half(d, value), narrow, reinterpret_cast<hwy::float16_t*>(to));
}

// The number after being stored as T.
template <typename T, typename D>
HWY_INLINE hn::Vec<D> rounded(D d, hn::Vec<D> value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    const hn::Rebind<std::uint32_t, D> words;
    return hn::BitCast(d, hn::And(nearest_bfloat(d, value), hn::Set(words, 0xFFFF0000U)));
  } else if constexpr (std::is_same_v<T, Half>) {
    return hn::PromoteTo(d, nearest_half(d, value));
  } else {
    return value;
  }
}

// Numbers up to this one become zero when they are stored as T: half of the smallest, since the tie goes to zero.
template <typename T>
inline constexpr float kVanishes = std::is_same_v<T, Bfloat16> ? 0x1p-134F
                                   : std::is_same_v<T, Half>   ? 0x1p-25F
                                                               : 0.0F;

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
