// Loops over floats, vectorised by Highway for whatever the machine has. One thread each; callers split the work.
#pragma once

#include <cstdint>

namespace snug::backends::cpu::simd {

void add(const float* a, const float* b, float* out, std::int64_t count);
void relu(const float* x, float* y, std::int64_t count);
// dx = addend + (y > 0 ? dy : 0); no addend when null.
void relu_grad(const float* dy, const float* y, const float* addend, float* dx, std::int64_t count);

// One bit an element, set where y > 0; the bits behind the last element are 0.
void sign_bits(const float* y, std::uint8_t* bits, std::int64_t count);
// dx = addend + (bit ? dy : 0); no addend when null.
void relu_grad_bits(const float* dy, const std::uint8_t* bits, const float* addend, float* dx, std::int64_t count);

// What all elements of a dropout have in common; see ops/random_draws.h for what is drawn.
struct DropoutRule {
  std::uint64_t seed, counter_high;
  std::uint64_t threshold;  // an element is kept when its word is at least this; 2^32: none is
  double kept;              // what kept ones are divided by
};
// Elements `first`, `first` + 1, ... of the whole batch.
void dropout(const DropoutRule& rule, std::uint64_t first, const float* x, float* y, std::int64_t count);

struct SgdRule {
  float learning_rate, momentum, weight_decay;
  float gradient_scale;  // 1 / loss scale
  bool nesterov;
};
// Where the weight, gradient and momentum are read and written: the same places or others; no momentum when null.
struct SgdArrays {
  const float *weight, *gradient, *momentum;
  float *new_weight, *new_gradient, *new_momentum;

  SgdArrays from(std::int64_t at) const {
    const auto moved = [&](auto* array) { return array == nullptr ? nullptr : array + at; };
    return {moved(weight), moved(gradient), moved(momentum), moved(new_weight), moved(new_gradient), moved(new_momentum)};
  }
};
// One step of SGD; clears the gradient.
void sgd(const SgdRule& rule, const SgdArrays& arrays, std::int64_t count);

// The rest works on rows of `channels` neighbouring floats, with constants a channel.

// sum += x - offset and squares += (x - offset)^2, a channel. An offset near the mean keeps the squares from cancelling.
void moments(const float* x, std::int64_t rows, std::int64_t channels, const float* offset, double* sum, double* squares);

// sum += x, a channel.
void column_sums(const float* x, std::int64_t rows, std::int64_t channels, double* sum);

// What normalising does to a channel: y = (x - mean) scale + bias, cut off below zero with relu. The mean is taken away first:
// where x is the mean, as for a lone example, the result is the bias to the bit.
struct Normalizer {
  const float *mean, *scale, *bias;
  bool relu;
};
void normalize(const float* x, float* y, std::int64_t rows, std::int64_t channels, const Normalizer& normalizer);

// dy' is dy where the normaliser gave a positive number, everywhere without relu: with_x += dy' (x - mean), plain += dy'. Without
// relu only the mean is read.
void gradient_sums(const float* dy, const float* x, std::int64_t rows, std::int64_t channels, const Normalizer& normalizer,
                   double* with_x, double* plain);

// dx = addend + (of_dy dy' + of_x (x - mean) + constant)
struct NormGradient {
  const float *of_dy, *of_x, *constant;
  Normalizer normalizer;
};
void norm_gradient(const float* dy, const float* x, const float* addend, float* dx, std::int64_t rows, std::int64_t channels,
                   const NormGradient& gradient);

// The largest of the pixels, a channel; a NaN is larger than any number, and the first of equals wins. Either result
// may be null: the largest values, or the winning pixels' numbers.
struct Pixel {
  const float* data;
  std::int32_t number;
};
void largest_pixel(const Pixel* pixels, std::int64_t count, std::int64_t channels, float* largest, std::int32_t* winner);

}  // namespace snug::backends::cpu::simd
