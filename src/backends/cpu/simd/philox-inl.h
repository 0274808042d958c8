// base/philox.h with a block in every lane; for files that Highway compiles once for each instruction set.
#if defined(SNUG_SIMD_PHILOX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_SIMD_PHILOX_INL_H
#undef SNUG_SIMD_PHILOX_INL_H
#else
#define SNUG_SIMD_PHILOX_INL_H
#endif

#include <cstdint>

#include <hwy/highway.h>

#include "base/philox.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint32_t>;

#if HWY_TARGET == HWY_SCALAR
// One block at a time.
inline void draw_blocks(std::uint64_t key, std::uint64_t first, std::uint64_t counter_high, std::uint32_t* words) {
  const PhiloxBlock block = philox(key, first, counter_high);
  for (int k = 0; k < 4; ++k) words[k] = block.word[k];
}
#else
// The high and low halves of the products of 32 bits.
template <typename D>
inline void multiply_words(D d, hn::Vec<D> a, std::uint32_t factor, hn::Vec<D>& high, hn::Vec<D>& low) {
  const hn::Repartition<std::uint64_t, D> wide;
  const hn::Vec<D> b = hn::Set(d, factor);
  const auto even = hn::BitCast(d, hn::ShiftRight<32>(hn::MulEven(a, b)));
  const auto odd = hn::BitCast(d, hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b));
  high = hn::OddEven(odd, even);
  low = hn::Mul(a, b);
}

// The block of every lane's counter, in the place of the counter.
template <typename D>
inline void philox_lanes(D d, std::uint64_t key, hn::Vec<D>& c0, hn::Vec<D>& c1, hn::Vec<D>& c2, hn::Vec<D>& c3) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    hn::Vec<D> high0, low0, high1, low1;
    multiply_words(d, c0, 0xD2511F53U, high0, low0);
    multiply_words(d, c2, 0xCD9E8D57U, high1, low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
    c1 = low1;
    c3 = low0;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

// base/philox.h with a block in every lane: words[4 i + k] is word k of block `first` + i. The block numbers must not carry into
// the upper half of the counter's low word.
inline void draw_blocks(std::uint64_t key, std::uint64_t first, std::uint64_t counter_high, std::uint32_t* words) {
  const Words d;
  auto c0 = hn::Iota(d, static_cast<std::uint32_t>(first));
  auto c1 = hn::Set(d, static_cast<std::uint32_t>(first >> 32U));
  auto c2 = hn::Set(d, static_cast<std::uint32_t>(counter_high));
  auto c3 = hn::Set(d, static_cast<std::uint32_t>(counter_high >> 32U));
  philox_lanes(d, key, c0, c1, c2, c3);
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
}
#endif

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
