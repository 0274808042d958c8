// 16-bit floating-point numbers on the host, as bits: IEEE half precision (1 sign, 5 exponent, 10 fraction) and bfloat16 (1, 8,
// 7: the upper half of a float). For converting states and single numbers; kernels have their own.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace snug {

// The nearest half, ties to even; beyond 65504 plus half a step it is infinite. Rounded once, so a float passed as a double loses
// nothing.
inline std::uint16_t half_from_double(double value) {
  const auto sign = static_cast<std::uint16_t>((std::bit_cast<std::uint64_t>(value) >> 48U) & 0x8000U);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7C00U);
  // Below the smallest normal number halves are the multiples of 2^-24. Both branches give the same for 2^-14 itself.
  if (magnitude < 0x1p-14) return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::nearbyint(magnitude * 0x1p24)));
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  const auto rounded = static_cast<unsigned>(std::nearbyint(fraction * 2048.0));
  // Rounding up to 2048 carries into the exponent by itself.
  return static_cast<std::uint16_t>(sign | ((static_cast<unsigned>(exponent + 14) << 10U) + (rounded - 1024U)));
}

// The same for a float, from its bits alone: for loops that no vector instruction does.
inline std::uint16_t half_from_float(float value) {
  constexpr std::uint32_t kInfinite = 0x477FF000U;  // 65520
  constexpr std::uint32_t kNormal = 0x38800000U;    // 2^-14
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  // The exponent changes from a float's bias to a half's, and the lost bits round the remaining ones: a carry goes into the
  // exponent.
  std::uint32_t half = (magnitude + 0xFFFU + (magnitude >> 13U & 1U) - (112U << 23U)) >> 13U;
  // Floats from 0.5 on have the spacing of subnormal halves.
  if (magnitude < kNormal) half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  if (magnitude >= kInfinite) half = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | half);
}

// All cases are computed and one is selected, so that loops need not branch.
inline float float_from_half(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7FFFU) << 13U;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const float below_normal = std::bit_cast<float>(magnitude + (113U << 23U)) - 0x1p-14F;
  std::uint32_t value = magnitude + (112U << 23U);
  value = magnitude < (1U << 23U) ? std::bit_cast<std::uint32_t>(below_normal) : value;
  value = magnitude >= (31U << 23U) ? magnitude | 0x7F800000U : value;  // infinity, or NaN with its payload
  return std::bit_cast<float>(sign | value);
}

// The nearest bfloat16, ties to even.
inline std::uint16_t bfloat_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U);
}

inline std::uint16_t bfloat_from_double(double value) {
  // Going through a float would round twice. Rounded to odd, the float keeps whether anything was cut off, and the second
  // rounding is correct: a float has more than two bits beyond a bfloat16.
  const auto nearest = static_cast<float>(value);
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const auto back = static_cast<double>(nearest);
  if (back != value && !std::isnan(value) && (bits & 1U) == 0) {
    const bool away = std::fabs(back) < std::fabs(value);
    bits = away ? bits + 1 : bits - 1;
  }
  return bfloat_from_float(std::bit_cast<float>(bits));
}

inline float float_from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

}  // namespace snug
