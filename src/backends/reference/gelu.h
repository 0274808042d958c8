// The Gaussian error linear unit of one number, and its derivative.
#pragma once

#include <cmath>
#include <numbers>

namespace snug::backends::reference {

namespace gelu_constants {

inline constexpr double kHalfRoot = std::numbers::sqrt2 / 2;
inline constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
inline constexpr double kCubic = 0.044715;

}  // namespace gelu_constants

// With the complementary error function, which is precise where x is far below zero. Minus infinity becomes NaN, so that an
// overflow stays visible.
inline double gelu_of(double x, bool by_tanh) {
  using namespace gelu_constants;
  if (by_tanh) return 0.5 * x * (1 + std::tanh(kTanhScale * x * (1 + kCubic * x * x)));
  return 0.5 * x * std::erfc(-x * kHalfRoot);
}

// The derivative of gelu. Its second term is zero far from zero, where computing it would be infinity times 0.
inline double gelu_slope(double x, bool by_tanh) {
  using namespace gelu_constants;
  if (by_tanh) {
    const double t = std::tanh(kTanhScale * x * (1 + kCubic * x * x));
    const double steepness = 1 - t * t;
    return 0.5 * (1 + t) + (steepness == 0 ? 0 : 0.5 * x * steepness * kTanhScale * (1 + 3 * kCubic * x * x));
  }
  const double density = std::exp(-0.5 * x * x) * kTanhScale / 2;
  return 0.5 * std::erfc(-x * kHalfRoot) + (density == 0 ? 0 : x * density);
}

}  // namespace snug::backends::reference
