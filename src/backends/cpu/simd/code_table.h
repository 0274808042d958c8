// ops::nearest_number by a lookup and a comparison, where a search would load eight bounds one after the other: the same number
// for every share.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ops/updates/block_code.h"

namespace snug::backends::cpu::simd {

// Shares are told apart by sign, exponent and seven bits of their mantissa. Between two that agree in all of these there is at
// most one bound, so a share's number is that of the lowest of them, or the one after it.
class CodeTable {
 public:
  constexpr explicit CodeTable(const ops::BlockCode& code) : code_(code) {
    for (std::uint32_t i = 0; i < kHalf; ++i) {
      const std::uint32_t bits = (kLeast + i) << kDropped;
      const bool is_share = i < kHalf - 1;
      const float positive = i == 0 ? 0.0F : std::bit_cast<float>(bits);
      const float negative = -std::bit_cast<float>(bits | ((1U << kDropped) - 1));
      lowest_[i] = static_cast<std::uint8_t>(is_share ? ops::nearest_number(code, positive) : 0);
      lowest_[kHalf + i] = static_cast<std::uint8_t>(is_share ? ops::nearest_number(code, negative) : 0);
    }
  }

  // `share` is from -1 to 1, or NaN.
  constexpr int operator()(float share) const {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(share);
    const std::uint32_t size = (bits & 0x7FFFFFFFU) >> kDropped;
    const std::uint32_t above = size < kLeast ? 0 : size - kLeast;
    const std::uint32_t place = (above < kHalf ? above : kHalf - 1) + (bits >> 31U) * kHalf;
    const int lowest = lowest_[place];
    return lowest + (share > code_.bounds[lowest] ? 1 : 0);
  }

 private:
  static constexpr std::uint32_t kDropped = 16;
  static constexpr std::uint32_t kLeast = 0x33800000U >> kDropped;                // 2^-24, below all bounds but 0
  static constexpr std::uint32_t kHalf = (0x3F800000U >> kDropped) - kLeast + 2;  // up to 1, and NaN

  const ops::BlockCode& code_;
  std::array<std::uint8_t, std::size_t{2} * kHalf> lowest_{};
};

inline constexpr CodeTable kSignedTable{ops::kSignedCode};
inline constexpr CodeTable kUnsignedTable{ops::kUnsignedCode};

}  // namespace snug::backends::cpu::simd
