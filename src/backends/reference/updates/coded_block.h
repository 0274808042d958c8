// A block of an optimizer's state on its way to codes (ops/updates/block_code.h): its new numbers, then their scale and codes.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "ops/updates/block_code.h"

namespace snug::backends::reference {

class CodedBlock {
 public:
  explicit CodedBlock(const ops::BlockCode& code) : code_(code) {}

  void set(std::int64_t i, float number) {
    numbers_[static_cast<std::size_t>(i)] = number;
    const float size = std::abs(number);
    // A NaN stays visible.
    largest_ = size > largest_ || std::isnan(size) ? size : largest_;
  }
  float scale() const { return largest_; }
  std::uint8_t byte(std::int64_t i) const { return ops::encoded(code_, numbers_[static_cast<std::size_t>(i)], largest_); }

 private:
  const ops::BlockCode& code_;
  std::array<float, ops::kCodeBlock> numbers_;
  float largest_ = 0;
};

}  // namespace snug::backends::reference
