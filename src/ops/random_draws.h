// Every random draw of a program, in one place: all backends draw the same numbers because they all call these functions, on the
// host or in a CUDA kernel. A draw depends only on its arguments, so the order, the device, the microbatch and the number of
// times it is made do not matter.
//
// The key of the generator is the run's seed. The high half of the counter holds the purpose of the draw above bit 40 and the
// step (or, for initial values, the state's key) below; the low half counts elements or examples. No two purposes share a number.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/philox.h"

namespace snug::ops {

// Ranges of purposes, which share no number: keys of dropout nodes, of nodes that pack, of parameters whose update is rounded
// stochastically, then one each for the rest.
inline constexpr std::uint64_t kDropoutPurpose = 0;
inline constexpr std::int64_t kMostDropoutKey = 0x3FFFFF;
inline constexpr std::uint64_t kPackPurpose = 0x400000;
inline constexpr std::int64_t kMostPackKey = 0x3FFFFF;
inline constexpr std::uint64_t kRoundingPurpose = 0x800000;
inline constexpr std::int64_t kMostRoundingKey = 0x7FFFFB;
inline constexpr std::uint64_t kRewirePurpose = 0xFFFFFC;
inline constexpr std::uint64_t kPatternPurpose = 0xFFFFFD;
inline constexpr std::uint64_t kInitPurpose = 0xFFFFFE;
inline constexpr std::uint64_t kImagePurpose = 0xFFFFFF;
static_assert(kDropoutPurpose + std::uint64_t{kMostDropoutKey} < kPackPurpose);
static_assert(kPackPurpose + std::uint64_t{kMostPackKey} < kRoundingPurpose);
static_assert(kRoundingPurpose + std::uint64_t{kMostRoundingKey} < kRewirePurpose);
static_assert(kImagePurpose < std::uint64_t{1} << 24U, "a purpose has 24 bits above the 40 of a step");

SNUG_HOST_DEVICE constexpr std::uint64_t counter_high(std::uint64_t purpose, std::uint64_t below_40_bits) {
  return below_40_bits | (purpose << 40U);
}

// Dropout. `element` = first_example * elements_per_example + row-major index within the microbatch, whatever the layout. One
// block serves the four elements from 4 * block on; element e takes word e % 4 of block e / 4.
SNUG_HOST_DEVICE constexpr PhiloxBlock dropout_block(std::uint64_t seed, std::uint64_t step, std::uint64_t key,
                                                     std::uint64_t block) {
  return philox(seed, block, counter_high(kDropoutPurpose + key, step));
}
SNUG_HOST_DEVICE constexpr std::uint32_t dropout_word(std::uint64_t seed, std::uint64_t step, std::uint64_t key,
                                                      std::uint64_t element) {
  return dropout_block(seed, step, key, element / 4).word[element % 4];
}
SNUG_HOST_DEVICE constexpr bool dropout_keeps(std::uint32_t word, double probability) {
  return uniform_unit(word) >= probability;
}

// Augmentation of one image: the crop starts at (dy, dx) of the image padded on all sides, then it is mirrored if `flip`. So
// pixel (h, w) of the result is pixel (h + dy - padding, v + dx - padding) of the source, v = flip ? width - 1 - w : w; outside
// of it, padding.
struct ImageAugmentation {
  bool flip;
  std::int64_t dy, dx;  // 0 .. 2 * padding
};
SNUG_HOST_DEVICE constexpr ImageAugmentation draw_image_augmentation(std::uint64_t seed, std::uint64_t step,
                                                                     std::uint64_t example, std::int64_t padding) {
  const PhiloxBlock block = philox(seed, example, counter_high(kImagePurpose, step));
  const auto shifts = static_cast<std::uint32_t>(2 * padding + 1);
  return {.flip = (block.word[0] & 1U) != 0,
          .dy = static_cast<std::int64_t>(uniform_below(block.word[1], shifts)),
          .dx = static_cast<std::int64_t>(uniform_below(block.word[2], shifts))};
}

// An update that is stochastically rounded: element e of the parameter, in memory order, takes word e % 4 of block e / 4, the
// lower half of it for the weight and the upper for the momentum.
SNUG_HOST_DEVICE constexpr std::uint32_t rounding_word(std::uint64_t seed, std::uint64_t step, std::uint64_t key,
                                                       std::uint64_t element) {
  return philox(seed, element / 4, counter_high(kRoundingPurpose + key, step)).word[element % 4];
}

// A gradient's addition to a momentum, stochastically rounded: rounding_word's elements from here on, which no other addition of
// the step uses, nor its update. Room for 2^34 elements, a million examples per step and this many additions per microbatch.
inline constexpr std::int64_t kSummands = 256;
SNUG_HOST_DEVICE constexpr std::uint64_t first_rounded_element(std::uint64_t first_example, std::uint64_t summand) {
  return ((first_example + 1) << 34U) + (summand << 54U);
}

// The number stochastically rounded to a half, as a float. `random`: 16 bits.
SNUG_HOST_DEVICE inline float stochastic_half(float value, std::uint32_t random) {
  const float magnitude = std::fabs(value);
  if (!(magnitude <= 65536.0F)) return value;  // too large for a half, or NaN
  // Normal halves have 11 bits; below these, halves are the multiples of 2^-24.
  const bool is_normal = magnitude >= 0x1p-14F;
  const float unit = is_normal ? std::ldexp(1.0F, std::ilogb(magnitude) - 10) : 0x1p-24F;
  const float chance = is_normal ? static_cast<float>(random >> 3U) * 0x1p-13F : static_cast<float>(random) * 0x1p-16F;
  return std::copysign(std::floor(magnitude / unit + chance) * unit, value);
}

// The same for bfloat16, which is the upper half of a float: a random number below the distance of two neighbors is added before
// the lower half is cut off.
SNUG_HOST_DEVICE inline float stochastic_bfloat(float value, std::uint32_t random) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return value;  // NaN
  bits = (bits + random) & 0xFFFF0000U;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

// Initial values, drawn per logical (row-major) element of the state.
// Uniform in [-1, 1): 24 bits, so that the value is exact in f32 too and cannot round up to 1. Element e takes word e % 4 of
// block e / 4.
SNUG_HOST_DEVICE constexpr double draw_init_uniform(std::uint64_t seed, std::uint64_t key, std::uint64_t element) {
  const std::uint32_t word = philox(seed, element / 4, counter_high(kInitPurpose, key)).word[element % 4];
  return (word >> 8U) * (1.0 / 8388608.0) - 1.0;
}

// Standard normal by Box and Muller. Elements e, e + 1 of an even e are the cosine and sine of one pair: radius from word 0 (or
// 2) and angle from word 1 (or 3) of block e / 4, the first pair of each four elements taking words 0 and 1.
SNUG_HOST_DEVICE inline double draw_init_normal(std::uint64_t seed, std::uint64_t key, std::uint64_t element) {
  const PhiloxBlock block = philox(seed, element / 4, counter_high(kInitPurpose, key));
  const std::uint64_t pair = element % 4 / 2;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_unit(block.word[2 * pair])));  // 1 - u is never 0
  const double angle = 6.283185307179586476925 * uniform_unit(block.word[2 * pair + 1]);
  return radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// Sparse patterns: whether place `place` of the store, counted over the elements of all its tensors, is taken when `wanted` of
// the `left` remaining places, this one included, are to be taken. So a walk over all places takes exactly as many as it should,
// every choice of them equally likely.
SNUG_HOST_DEVICE constexpr bool takes_place(std::uint32_t word, std::int64_t wanted, std::int64_t left) {
  return uniform_unit(word) * static_cast<double>(left) < static_cast<double>(wanted);
}
SNUG_HOST_DEVICE constexpr std::uint32_t pattern_word(std::uint64_t seed, std::uint64_t place) {
  return philox(seed, place / 4, counter_high(kPatternPurpose, 0)).word[place % 4];
}
SNUG_HOST_DEVICE constexpr std::uint32_t rewire_word(std::uint64_t seed, std::uint64_t step, std::uint64_t place) {
  return philox(seed, place / 4, counter_high(kRewirePurpose, step)).word[place % 4];
}

}  // namespace snug::ops
