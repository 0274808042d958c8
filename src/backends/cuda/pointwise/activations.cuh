// Activations and their derivatives, in float. Written so that minus infinity becomes NaN: an overflow stays visible.
#pragma once

#include <type_traits>

namespace snug::backends::cuda {

// How an exponential and a quotient are made. The GPU's own approximations are off by 2^-21: nothing in a result of 16 bits,
// which is off by 2^-9 or 2^-12 itself, and with them these kernels take no longer than reading and writing does.
struct PreciseMath {
  __device__ static float exp(float x) { return expf(x); }
  __device__ static float divide(float a, float b) { return a / b; }
};
struct ApproximateMath {
  __device__ static float exp(float x) { return __expf(x); }
  __device__ static float divide(float a, float b) { return __fdividef(a, b); }
};
template <typename T>
using MathFor = std::conditional_t<sizeof(T) == 2, ApproximateMath, PreciseMath>;

// s = 1 / (1 + exp(-x)) and its slope s * (1 - s). Far below zero the exponential overflows to infinity, and both are 0.
struct SigmoidParts {
  float value, slope;
};
template <typename Math>
__device__ inline SigmoidParts sigmoid_parts(float x) {
  const float e = Math::exp(-x);
  const float s = Math::divide(1.0F, 1.0F + e);
  return {.value = s, .slope = s == 0.0F ? 0.0F : e * s * s};
}
template <typename Math>
__device__ inline float sigmoid(float x) {
  return Math::divide(1.0F, 1.0F + Math::exp(-x));
}

template <typename Math>
struct Sigmoid {
  __device__ static float value(float x) { return sigmoid<Math>(x); }
  __device__ static float slope(float x) { return sigmoid_parts<Math>(x).slope; }
};

template <typename Math>
struct Silu {
  __device__ static float value(float x) { return x * sigmoid<Math>(x); }
  __device__ static float slope(float x) {
    const SigmoidParts s = sigmoid_parts<Math>(x);
    return s.value == 0.0F ? 0.0F : s.value + x * s.slope;
  }
};

// x * P(N(0,1) <= x). Above zero by the error function, which is precise there, below by its complement.
template <typename Math>
struct Gelu {
  static constexpr float kHalfRoot = 0.70710678118654752F;     // sqrt(1 / 2)
  static constexpr float kLargestDensity = 0.39894228040143F;  // 1 / sqrt(2 pi)

  __device__ static float probability(float x) {
    return x > 0.0F ? 0.5F * (1.0F + erff(x * kHalfRoot)) : 0.5F * erfcf(-x * kHalfRoot);
  }
  __device__ static float value(float x) { return x * probability(x); }
  __device__ static float slope(float x) {
    const float density = Math::exp(-0.5F * x * x) * kLargestDensity;
    return probability(x) + (density == 0.0F ? 0.0F : x * density);
  }
};

// 0.5 * (1 + tanh(u)) is the sigmoid of 2u.
template <typename Math>
struct GeluByTanh {
  static constexpr float kScale = 0.79788456080286536F;  // sqrt(2 / pi)
  static constexpr float kCubic = 0.044715F;

  __device__ static float value(float x) { return x * sigmoid<Math>(2.0F * kScale * x * (1.0F + kCubic * x * x)); }
  __device__ static float slope(float x) {
    const SigmoidParts s = sigmoid_parts<Math>(2.0F * kScale * x * (1.0F + kCubic * x * x));
    return s.value + (s.slope == 0.0F ? 0.0F : x * s.slope * 2.0F * kScale * (1.0F + 3.0F * kCubic * x * x));
  }
};

}  // namespace snug::backends::cuda
