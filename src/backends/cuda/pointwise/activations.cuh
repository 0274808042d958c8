// Activations and their derivatives, in float. Written so that minus infinity becomes NaN: an overflow stays visible.
#pragma once

namespace snug::backends::cuda {

// 1 / (1 + exp(-x)). Far below zero the exponential overflows to infinity, and the result is 0.
__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

struct Sigmoid {
  __device__ static float value(float x) { return sigmoid(x); }
  __device__ static float slope(float x) {
    const float s = sigmoid(x);
    return s * (1.0F - s);
  }
};

struct Silu {
  __device__ static float value(float x) { return x * sigmoid(x); }
  __device__ static float slope(float x) {
    const float s = sigmoid(x);
    return s == 0.0F ? 0.0F : s * (1.0F + x * (1.0F - s));
  }
};

// x * P(N(0,1) <= x). Above zero by the error function, which is precise there, below by its complement.
struct Gelu {
  static constexpr float kHalfRoot = 0.70710678118654752F;     // sqrt(1 / 2)
  static constexpr float kLargestDensity = 0.39894228040143F;  // 1 / sqrt(2 pi)

  __device__ static float probability(float x) {
    return x > 0.0F ? 0.5F * (1.0F + erff(x * kHalfRoot)) : 0.5F * erfcf(-x * kHalfRoot);
  }
  __device__ static float value(float x) { return x * probability(x); }
  __device__ static float slope(float x) {
    const float density = expf(-0.5F * x * x) * kLargestDensity;
    return probability(x) + (density == 0.0F ? 0.0F : x * density);
  }
};

// 0.5 * (1 + tanh(u)) is the sigmoid of 2u.
struct GeluByTanh {
  static constexpr float kScale = 0.79788456080286536F;  // sqrt(2 / pi)
  static constexpr float kCubic = 0.044715F;

  __device__ static float value(float x) { return x * sigmoid(2.0F * kScale * x * (1.0F + kCubic * x * x)); }
  __device__ static float slope(float x) {
    const float u = 2.0F * kScale * x * (1.0F + kCubic * x * x);
    const float s = sigmoid(u);
    const float steepness = s * sigmoid(-u);
    return s + (steepness == 0.0F ? 0.0F : x * steepness * 2.0F * kScale * (1.0F + 3.0F * kCubic * x * x));
  }
};

}  // namespace snug::backends::cuda
