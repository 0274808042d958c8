// The arithmetic of pack and unpack, in one place: every backend calls these functions, or does the same operations in the same
// order, and so gets the same codes.
#pragma once

#include <cstdint>
#include <limits>

#include "ops/random_draws.h"

namespace snug::ops {

// Elements, in memory order, that share a range. With 256 the range takes a quarter of a bit per element, and the draws of a
// group are whole blocks of the generator.
inline constexpr std::int64_t kPackGroup = 256;

SNUG_HOST_DEVICE constexpr std::int64_t pack_groups(std::int64_t elements) { return (elements + kPackGroup - 1) / kPackGroup; }
// Bytes of `elements` codes; those of a whole group fill whole bytes.
SNUG_HOST_DEVICE constexpr std::int64_t pack_bytes(std::int64_t elements, std::int64_t bits) { return (elements * bits + 7) / 8; }
SNUG_HOST_DEVICE constexpr std::uint32_t pack_levels(std::int64_t bits) { return (1U << static_cast<unsigned>(bits)) - 1; }

// Code c represents zero + c * step.
struct PackRange {
  float zero, step;
};
static_assert(sizeof(PackRange) == 8);

// Of a group whose values lie between `least` and `most`. A group with a number that is not finite, or whose span is not, unpacks
// to NaN, so that the error shows.
SNUG_HOST_DEVICE constexpr PackRange pack_range(float least, float most, bool has_nan, std::uint32_t levels) {
  const float span = most - least;
  if (has_nan || !(span <= std::numeric_limits<float>::max())) return {std::numeric_limits<float>::quiet_NaN(), 0};
  return {least, span / static_cast<float>(levels)};
}
// The factor for distances from zero. A subnormal step has no inverse: every code is 0 there.
SNUG_HOST_DEVICE constexpr float pack_inverse(const PackRange& range) {
  return range.step >= std::numeric_limits<float>::min() ? 1 / range.step : 0;
}

// For stochastic rounding, so that a code represents its value on average: 16 random bits as a number between 0 and 1.
SNUG_HOST_DEVICE constexpr float pack_chance(std::uint32_t random) {
  return (static_cast<float>(random) + 0.5F) * (1.0F / 65536.0F);
}
SNUG_HOST_DEVICE constexpr std::uint32_t pack_code(float value, const PackRange& range, float inverse, std::uint32_t levels,
                                                   std::uint32_t random) {
  const float place = (value - range.zero) * inverse + pack_chance(random);
  if (!(place > 0)) return 0;  // NaN too
  return place >= static_cast<float>(levels) ? levels : static_cast<std::uint32_t>(place);
}
SNUG_HOST_DEVICE constexpr float unpack_code(std::uint32_t code, const PackRange& range) {
  return range.zero + static_cast<float>(code) * range.step;
}

// Where in a group of `elements` a code lies: byte `byte`, `shift` bits up. The first codes lie in the lowest bits of all bytes,
// so that neighboring bytes are made from neighboring elements.
struct PackPlace {
  std::int64_t byte;
  unsigned shift;
};
SNUG_HOST_DEVICE constexpr PackPlace pack_place(std::int64_t i, std::int64_t elements, std::int64_t bits) {
  const std::int64_t bytes = pack_bytes(elements, bits);
  return {i % bytes, static_cast<unsigned>(i / bytes * bits)};
}

// The draws of a group: number `group` of a microbatch that begins with `first_example`. Draws of different examples never
// overlap, because an example's are counted in whole groups. Without elements per example they are the same in every microbatch.
SNUG_HOST_DEVICE constexpr std::uint64_t pack_first_block(std::uint64_t first_example, std::int64_t elements_per_example,
                                                          std::int64_t group) {
  const auto groups = static_cast<std::uint64_t>(pack_groups(elements_per_example));
  return (first_example * groups + static_cast<std::uint64_t>(group)) * (kPackGroup / 8);
}
SNUG_HOST_DEVICE constexpr std::uint64_t pack_counter_high(std::uint64_t key, std::uint64_t step) {
  return counter_high(kPackPurpose + key, step);
}
// 16 bits for element `i` of the group: eight elements share a block and two share a word, the lower half first.
SNUG_HOST_DEVICE constexpr std::uint32_t pack_random(const PhiloxBlock& block, std::int64_t i) {
  return (block.word[i % 8 / 2] >> static_cast<unsigned>(i % 2 * 16)) & 0xFFFFU;
}

}  // namespace snug::ops
