// Optimizer states in 8 bits per element: the arithmetic that all backends share, to the bit. After Dettmers et al., "8-bit
// Optimizers via Block-wise Quantization" (2021): every block has its largest absolute value as a scale, and an element is the
// nearest of 256 numbers that are not evenly spaced: seven decades, with twice as many numbers in each as in the one below,
// because elements of a momentum differ by orders of magnitude and small ones must not vanish.
#pragma once

#include <cstdint>
#include <limits>

#include "base/philox.h"

namespace snug::ops {

// Elements in memory order that share a scale. The paper takes 2,048; with 256 a large element spoils fewer others, for 1.6%
// more bytes, and a block's work stays on the stack.
inline constexpr std::int64_t kCodeBlock = 256;

SNUG_HOST_DEVICE constexpr std::int64_t code_blocks(std::int64_t elements) { return (elements + kCodeBlock - 1) / kCodeBlock; }

// 256 numbers that rise from about -1, or from 0, to 1. Plain arrays: the GPU reads them, too.
struct BlockCode {
  int zero;           // which of the numbers is 0
  float values[256];  // by number
  float bounds[256];  // above bound i the number is at least i + 1; nothing is above the last
};

// Bounds are half way between neighbors. Without a sign there are twice as many numbers in every decade, and no number above 0 is
// stored as 0: these are second moments, which beside a first moment that is not 0 would make a step of m / epsilon.
constexpr BlockCode make_block_code(bool has_sign) {
  BlockCode code{.zero = has_sign ? 127 : 0, .values = {}, .bounds = {}};
  int at = code.zero + 1;
  double decade = 1e-6;
  for (int exponent = 0; exponent < 7; ++exponent, decade *= 10) {
    const int count = has_sign ? 1 << exponent : 2 << exponent;
    for (int k = 0; k < count; ++k, ++at) {
      const double middle = 0.1 + 0.9 * (k + 0.5) / count;
      code.values[at] = static_cast<float>(decade * middle);
      if (has_sign) code.values[2 * code.zero - at] = static_cast<float>(-decade * middle);
    }
  }
  code.values[255] = 1;
  for (int i = 0; i < 255; ++i)
    code.bounds[i] = static_cast<float>((static_cast<double>(code.values[i]) + static_cast<double>(code.values[i + 1])) / 2);
  code.bounds[255] = std::numeric_limits<float>::max();
  if (!has_sign) code.bounds[0] = 0;
  return code;
}

inline constexpr BlockCode kSignedCode = make_block_code(true);     // of momenta and first moments
inline constexpr BlockCode kUnsignedCode = make_block_code(false);  // of second moments

// How many bounds a number is above; NaN is above none.
SNUG_HOST_DEVICE constexpr int nearest_number(const BlockCode& code, float share) {
  int number = 0;
  for (int step = 128; step > 0; step /= 2) {
    if (share > code.bounds[number + step - 1]) number += step;
  }
  return number;
}

// What is stored: shifted so that a byte of 0 is the number 0, and cleared bytes are states of 0.
SNUG_HOST_DEVICE constexpr std::uint8_t byte_of(const BlockCode& code, int number) {
  return static_cast<std::uint8_t>(number - code.zero);
}
SNUG_HOST_DEVICE constexpr int number_of(const BlockCode& code, std::uint8_t byte) { return (byte + code.zero) & 255; }

// A value of a block, and the byte that it is stored as when the largest absolute value of the block is `largest`.
SNUG_HOST_DEVICE constexpr float decoded(const BlockCode& code, std::uint8_t byte, float scale) {
  return code.values[number_of(code, byte)] * scale;
}
SNUG_HOST_DEVICE constexpr std::uint8_t encoded(const BlockCode& code, float value, float largest) {
  return byte_of(code, largest == 0 ? code.zero : nearest_number(code, value / largest));
}

}  // namespace snug::ops
