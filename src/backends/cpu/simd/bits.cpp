#include "backends/cpu/simd/loops.h"

// Loops over bits and random words; see loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/bits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd/philox-inl.h"
#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"
#include "base/philox.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
// Elements that fill whole vectors and whose bits fill whole bytes.
inline std::int64_t group() { return lanes() < 8 ? 8 : lanes(); }

template <typename T>
void sign_bits(const T* y, std::uint8_t* bits, std::int64_t count) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + group() <= count; i += group()) {
    std::uint64_t packed = 0;
    for (std::int64_t k = 0; k < group(); k += lanes()) {
      std::uint64_t part = 0;
      hn::StoreMaskBits(d, hn::Gt(load(d, y + i + k), hn::Zero(d)), reinterpret_cast<std::uint8_t*>(&part));
      packed |= part << static_cast<unsigned>(k);
    }
    for (std::int64_t byte = 0; byte < group() / 8; ++byte)
      bits[i / 8 + byte] = static_cast<std::uint8_t>(packed >> static_cast<unsigned>(8 * byte));
  }
  for (; i < count; i += 8) {
    unsigned packed = 0;
    for (std::int64_t k = 0; k < 8 && i + k < count; ++k)
      packed |= (to_float(y[i + k]) > 0 ? 1U : 0U) << static_cast<unsigned>(k);
    bits[i / 8] = static_cast<std::uint8_t>(packed);
  }
}

template <typename T>
void relu_grad_bits(const T* dy, const std::uint8_t* bits, const T* addend, T* dx, std::int64_t count) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + group() <= count; i += group()) {
    std::uint64_t packed = 0;
    for (std::int64_t byte = 0; byte < group() / 8; ++byte)
      packed |= static_cast<std::uint64_t>(bits[i / 8 + byte]) << static_cast<unsigned>(8 * byte);
    for (std::int64_t k = 0; k < group(); k += lanes()) {
      const std::uint64_t part = packed >> static_cast<unsigned>(k);
      const auto passes = hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(&part));
      const auto passed = hn::IfThenElseZero(passes, load(d, dy + i + k));
      store(addend == nullptr ? passed : hn::Add(load(d, addend + i + k), passed), d, dx + i + k);
    }
  }
  for (; i < count; ++i) {
    const float passed = (static_cast<unsigned>(bits[i / 8]) >> static_cast<unsigned>(i % 8) & 1U) != 0 ? to_float(dy[i]) : 0.0F;
    dx[i] = stored<T>(addend == nullptr ? passed : to_float(addend[i]) + passed);
  }
}

template <typename T>
T dropped(const DropoutRule& rule, std::uint32_t word, T x) {
  return stored<T>(word >= rule.threshold ? to_float(x) / rule.kept : 0.0);
}

template <typename T>
void dropout(const DropoutRule& rule, std::uint64_t first, const T* x, T* y, std::int64_t count) {
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

template <typename T>
constexpr BitLoops<T> kBitLoops{.sign_bits = sign_bits<T>, .relu_grad_bits = relu_grad_bits<T>, .dropout = dropout<T>};

SNUG_DEFINE_TABLES(BitLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(BitLoops, bit_loops)

}  // namespace snug::backends::cpu::simd
#endif
