// Momentum in 8 bits per element: the arithmetic that all backends share, to the bit. After Dettmers et al., "8-bit Optimizers
// via Block-wise Quantization" (2021): every block has its largest absolute value as a scale, and an element is the nearest of
// 256 numbers that are not evenly spaced: seven decades, with twice as many numbers in each as in the one below, because elements
// of a momentum differ by orders of magnitude and small ones must not vanish.
#pragma once

#include <array>
#include <cstdint>

#include "base/philox.h"

namespace snug::ops {

// Elements in memory order that share a scale. The paper takes 2,048; with 256 a large element spoils fewer others, for 1.6%
// more bytes, and a block's work stays on the stack.
inline constexpr std::int64_t kMomentumBlock = 256;
// Parameters with fewer elements (of normalization, biases) keep an unquantized momentum: they take few bytes and are sensitive.
inline constexpr std::int64_t kLeastQuantizedElements = 4096;

SNUG_HOST_DEVICE constexpr std::int64_t momentum_blocks(std::int64_t elements) {
  return (elements + kMomentumBlock - 1) / kMomentumBlock;
}

// The 256 numbers, rising from about -1 to 1; number 127 is 0.
inline constexpr int kZeroMomentum = 127;
inline constexpr std::array<float, 256> kMomentumValues = [] {
  std::array<float, 256> values{};
  int at = kZeroMomentum + 1;
  double decade = 1e-6;
  for (int exponent = 0; exponent < 7; ++exponent, decade *= 10) {
    const int count = 1 << exponent;
    for (int k = 0; k < count; ++k, ++at) {
      const double middle = 0.1 + 0.9 * (k + 0.5) / count;
      values[static_cast<std::size_t>(at)] = static_cast<float>(decade * middle);
      values[static_cast<std::size_t>(2 * kZeroMomentum - at)] = static_cast<float>(-decade * middle);
    }
  }
  values[255] = 1;
  return values;
}();
// Half way between neighbors: above bound i the nearest number is at least i + 1.
inline constexpr std::array<float, 255> kMomentumBounds = [] {
  std::array<float, 255> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i)
    bounds[i] = static_cast<float>((static_cast<double>(kMomentumValues[i]) + static_cast<double>(kMomentumValues[i + 1])) / 2);
  return bounds;
}();

// How many bounds a number is above; NaN is above none.
constexpr int nearest_momentum(float share) {
  int number = 0;
  for (int step = 128; step > 0; step /= 2) {
    if (share > kMomentumBounds[static_cast<std::size_t>(number + step - 1)]) number += step;
  }
  return number;
}

// What is stored: shifted so that a byte of 0 is the number 0, and cleared bytes are a momentum of 0.
constexpr std::uint8_t momentum_code(int number) { return static_cast<std::uint8_t>(number - kZeroMomentum); }
constexpr int momentum_number(std::uint8_t code) { return (code + kZeroMomentum) & 255; }

}  // namespace snug::ops
