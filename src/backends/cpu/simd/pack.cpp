#include "backends/cpu/simd/pack.h"

#include <algorithm>
#include <cmath>

// Packing; see loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/pack.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd/philox-inl.h"
#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Comparisons ignore NaN on some machines and not on others, so it is checked separately.
template <typename T>
HWY_INLINE ops::PackRange range_of(const T* x, std::int64_t elements, std::uint32_t levels) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  float least = std::numeric_limits<float>::infinity();
  float most = -least;
  bool has_nan = false;
  std::int64_t i = 0;
  if (elements >= lanes) {
    auto low = load(d, x);
    auto high = low;
    auto nan = hn::IsNaN(low);
    for (i = lanes; i + lanes <= elements; i += lanes) {
      const auto value = load(d, x + i);
      low = hn::Min(low, value);
      high = hn::Max(high, value);
      nan = hn::Or(nan, hn::IsNaN(value));
    }
    HWY_ALIGN float spilled[2 * hn::MaxLanes(Floats())];
    hn::StoreU(low, d, spilled);
    hn::StoreU(high, d, spilled + lanes);
    has_nan = !hn::AllFalse(d, nan);
    for (std::int64_t k = 0; k < lanes && !has_nan; ++k) {
      least = std::min(least, spilled[k]);
      most = std::max(most, spilled[lanes + k]);
    }
  }
  for (; i < elements; ++i) {
    const float value = hn::GetLane(load(Single(), x + i));
    has_nan = has_nan || std::isnan(value);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return ops::pack_range(least, most, has_nan, levels);
}

// 16 random bits for every element of a group, in the order of the generator's words.
HWY_INLINE void draw_group(const PackRule& rule, std::uint64_t first_block, std::int64_t elements, std::uint32_t* words) {
  const auto blocks = static_cast<std::int64_t>(hn::Lanes(Words()));
  const std::int64_t wanted = (elements + 7) / 8;
  for (std::int64_t block = 0; block < wanted; block += blocks) {
    draw_blocks(rule.seed, first_block + static_cast<std::uint64_t>(block), rule.counter_high, words + 4 * block);
  }
}

// A byte for every code, then as many of them in a byte as fit: byte j has the codes j, j + bytes, ... one above the other.
template <typename T>
void pack(const PackRule& rule, std::uint64_t first_block, const T* x, std::int64_t elements, std::uint8_t* codes,
          ops::PackRange* out) {
  const std::uint32_t levels = ops::pack_levels(rule.bits);
  const std::int64_t bytes = ops::pack_bytes(elements, rule.bits);
  const ops::PackRange range = range_of(x, elements, levels);
  *out = range;
  if (std::isnan(range.zero)) {
    std::fill_n(codes, bytes, std::uint8_t{0});
    return;
  }
  // With room after the last block for the rest of its vector.
  HWY_ALIGN std::uint32_t words[ops::kPackGroup / 2 + 4 * hn::MaxLanes(Words())];
  draw_group(rule, first_block, elements, words);
  const auto* random = reinterpret_cast<const std::uint16_t*>(words);
  HWY_ALIGN std::uint8_t wide[ops::kPackGroup + 8];
  const float inverse = ops::pack_inverse(range);
  for_each_vector(elements, [&](auto d, std::int64_t i) {
    const hn::Rebind<std::int32_t, decltype(d)> integers;
    const hn::Rebind<std::uint16_t, decltype(d)> halves;
    const hn::Rebind<std::uint8_t, decltype(d)> narrow;
    const auto drawn = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(halves, random + i)));
    const auto chance = hn::Mul(hn::Add(drawn, hn::Set(d, 0.5F)), hn::Set(d, 1.0F / 65536.0F));
    const auto distance = hn::Mul(hn::Sub(load(d, x + i), hn::Set(d, range.zero)), hn::Set(d, inverse));
    const auto place = hn::Min(hn::Add(distance, chance), hn::Set(d, static_cast<float>(levels)));
    // Never negative: zero is the smallest.
    hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(integers, place)), narrow, wide + i);
  });
  const std::int64_t in_a_byte = 8 / rule.bits;
  std::fill_n(wide + elements, in_a_byte * bytes - elements, std::uint8_t{0});
  std::copy_n(wide, bytes, codes);
  for (std::int64_t k = 1; k < in_a_byte; ++k) {
    const auto shift = static_cast<unsigned>(k * rule.bits);
    const std::uint8_t* above = wide + k * bytes;
    for (std::int64_t j = 0; j < bytes; ++j) codes[j] = static_cast<std::uint8_t>(codes[j] | (above[j] << shift));
  }
}

template <typename T>
void unpack(std::int64_t bits, const std::uint8_t* codes, const ops::PackRange& range, T* x, std::int64_t elements) {
  const std::int64_t bytes = ops::pack_bytes(elements, bits);
  for (std::int64_t first = 0; first < elements; first += bytes) {
    const auto shift = static_cast<int>(first / bytes * bits);
    for_each_vector(std::min(bytes, elements - first), [&](auto d, std::int64_t j) {
      const hn::Rebind<std::int32_t, decltype(d)> integers;
      const hn::Rebind<std::uint8_t, decltype(d)> narrow;
      const auto code = hn::And(hn::ShiftRightSame(hn::PromoteTo(integers, hn::LoadU(narrow, codes + j)), shift),
                                hn::Set(integers, static_cast<std::int32_t>(ops::pack_levels(bits))));
      const auto above = hn::Mul(hn::ConvertTo(d, code), hn::Set(d, range.step));
      store(hn::Add(hn::Set(d, range.zero), above), d, x + first + j);
    });
  }
}

template <typename T>
constexpr PackLoops<T> kPackLoops{.pack = pack<T>, .unpack = unpack<T>};

SNUG_DEFINE_TABLES(PackLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(PackLoops, pack_loops)

}  // namespace snug::backends::cpu::simd
#endif
