// The logistic function and what is made of it.
#pragma once

#include <cmath>

namespace snug::backends::reference {

// 1 / (1 + exp(-x)). Far below zero the exponential overflows to infinity, and the result is 0.
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Minus infinity becomes NaN, so that an overflow stays visible.
inline double silu_of(double x) { return x * sigmoid(x); }
inline double silu_slope(double x) {
  const double s = sigmoid(x);
  return s == 0 ? 0 : s * (1 + x * (1 - s));
}

}  // namespace snug::backends::reference
