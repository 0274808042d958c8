#include "backends/cpu/simd_loops.h"

// Loops over bits and random words; see simd_loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd_bits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/philox.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

inline std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }
// Elements whose bits are whole bytes, and that are whole vectors.
inline std::int64_t group() { return lanes() < 8 ? 8 : lanes(); }

void sign_bits_loop(const float* y, std::uint8_t* bits, std::int64_t count) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + group() <= count; i += group()) {
    std::uint64_t packed = 0;
    for (std::int64_t k = 0; k < group(); k += lanes()) {
      std::uint64_t part = 0;
      hn::StoreMaskBits(d, hn::Gt(hn::LoadU(d, y + i + k), hn::Zero(d)), reinterpret_cast<std::uint8_t*>(&part));
      packed |= part << static_cast<unsigned>(k);
    }
    for (std::int64_t byte = 0; byte < group() / 8; ++byte)
      bits[i / 8 + byte] = static_cast<std::uint8_t>(packed >> static_cast<unsigned>(8 * byte));
  }
  for (; i < count; i += 8) {
    unsigned packed = 0;
    for (std::int64_t k = 0; k < 8 && i + k < count; ++k) packed |= (y[i + k] > 0 ? 1U : 0U) << static_cast<unsigned>(k);
    bits[i / 8] = static_cast<std::uint8_t>(packed);
  }
}

void relu_grad_bits_loop(const float* dy, const std::uint8_t* bits, const float* addend, float* dx, std::int64_t count) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + group() <= count; i += group()) {
    std::uint64_t packed = 0;
    for (std::int64_t byte = 0; byte < group() / 8; ++byte)
      packed |= static_cast<std::uint64_t>(bits[i / 8 + byte]) << static_cast<unsigned>(8 * byte);
    for (std::int64_t k = 0; k < group(); k += lanes()) {
      const std::uint64_t part = packed >> static_cast<unsigned>(k);
      const auto passes = hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(&part));
      const auto passed = hn::IfThenElseZero(passes, hn::LoadU(d, dy + i + k));
      hn::StoreU(addend == nullptr ? passed : hn::Add(hn::LoadU(d, addend + i + k), passed), d, dx + i + k);
    }
  }
  for (; i < count; ++i) {
    const float passed = (static_cast<unsigned>(bits[i / 8]) >> static_cast<unsigned>(i % 8) & 1U) != 0 ? dy[i] : 0.0F;
    dx[i] = addend == nullptr ? passed : addend[i] + passed;
  }
}

using Words = hn::ScalableTag<std::uint32_t>;

#if HWY_TARGET == HWY_SCALAR
// One block at a time.
void draw_blocks(std::uint64_t key, std::uint64_t first, std::uint64_t counter_high, std::uint32_t* words) {
  const PhiloxBlock block = philox(key, first, counter_high);
  for (int k = 0; k < 4; ++k) words[k] = block.word[k];
}
#else
using WordVector = hn::Vec<Words>;

// The high and low halves of the products of 32 bits.
inline void multiply(WordVector a, std::uint32_t factor, WordVector& high, WordVector& low) {
  const Words d;
  const hn::Repartition<std::uint64_t, Words> wide;
  const WordVector b = hn::Set(d, factor);
  const auto even = hn::BitCast(d, hn::ShiftRight<32>(hn::MulEven(a, b)));
  const auto odd = hn::BitCast(d, hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b));
  high = hn::OddEven(odd, even);
  low = hn::Mul(a, b);
}

// base/philox.h with a block in every lane: words[4 i + k] is word k of block `first` + i. The blocks' numbers must not carry
// into the upper half of the counter's low word.
void draw_blocks(std::uint64_t key, std::uint64_t first, std::uint64_t counter_high, std::uint32_t* words) {
  const Words d;
  WordVector c0 = hn::Iota(d, static_cast<std::uint32_t>(first));
  WordVector c1 = hn::Set(d, static_cast<std::uint32_t>(first >> 32U));
  WordVector c2 = hn::Set(d, static_cast<std::uint32_t>(counter_high));
  WordVector c3 = hn::Set(d, static_cast<std::uint32_t>(counter_high >> 32U));
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    WordVector high0, low0, high1, low1;
    multiply(c0, 0xD2511F53U, high0, low0);
    multiply(c2, 0xCD9E8D57U, high1, low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
    c1 = low1;
    c3 = low0;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
}
#endif

inline float dropped(const DropoutRule& rule, std::uint32_t word, float x) {
  return word >= rule.threshold ? static_cast<float>(x / rule.kept) : 0.0F;
}

void dropout_loop(const DropoutRule& rule, std::uint64_t first, const float* x, float* y, std::int64_t count) {
  const auto slow = [&](std::int64_t i) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(i);
    y[i] = dropped(rule, philox(rule.seed, element / 4, rule.counter_high).word[element % 4], x[i]);
  };
  HWY_ALIGN std::uint32_t words[4 * hn::MaxLanes(Words())];
  const std::int64_t drawn = 4 * lanes();
  std::int64_t i = 0;
  for (; i < count && (first + static_cast<std::uint64_t>(i)) % 4 != 0; ++i) slow(i);
  for (; i + drawn <= count; i += drawn) {
    const std::uint64_t block = (first + static_cast<std::uint64_t>(i)) / 4;
    if (static_cast<std::uint32_t>(block) > 0xFFFFFFFFU - static_cast<std::uint32_t>(lanes())) {
      for (std::int64_t k = 0; k < drawn; ++k) slow(i + k);
      continue;
    }
    draw_blocks(rule.seed, block, rule.counter_high, words);
    for (std::int64_t k = 0; k < drawn; ++k) y[i + k] = dropped(rule, words[k], x[i + k]);
  }
  for (; i < count; ++i) slow(i);
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(sign_bits_loop);
HWY_EXPORT(relu_grad_bits_loop);
HWY_EXPORT(dropout_loop);

void sign_bits(const float* y, std::uint8_t* bits, std::int64_t count) { HWY_DYNAMIC_DISPATCH(sign_bits_loop)(y, bits, count); }

void relu_grad_bits(const float* dy, const std::uint8_t* bits, const float* addend, float* dx, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(relu_grad_bits_loop)(dy, bits, addend, dx, count);
}

void dropout(const DropoutRule& rule, std::uint64_t first, const float* x, float* y, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(dropout_loop)(rule, first, x, y, count);
}

}  // namespace snug::backends::cpu::simd
#endif
