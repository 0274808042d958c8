// Loops over stored numbers, vectorized by Highway for the machine's instruction set: T is float, Bfloat16 or Half (storage.h),
// loaded as floats, computed as floats and rounded to nearest when stored. One thread each; callers split the work.
//
//   simd::element_loops<T>().add(a, b, out, count);
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"

namespace snug::backends::cpu::simd {

template <typename T>
struct ElementLoops {
  void (*add)(const T* a, const T* b, T* out, std::int64_t count);
  // out = sum + fresh, where the fresh numbers are rounded to T before they are added.
  void (*add_floats)(const T* sum, const float* fresh, T* out, std::int64_t count);
  void (*relu)(const T* x, T* y, std::int64_t count);
  // dx = addend + (y > 0 ? dy : 0); no addend when null.
  void (*relu_grad)(const T* dy, const T* y, const T* addend, T* dx, std::int64_t count);
  void (*widen)(const T* from, float* to, std::int64_t count);
  void (*narrow)(const float* from, T* to, std::int64_t count);
  // The sum of squares.
  double (*squares)(const T* x, std::int64_t count);
};
template <typename T>
const ElementLoops<T>& element_loops();

// out = sum + the rounded rows, or only these where sum is null: two rows of 16 floats become one of 16 pairs.
void place_row_pairs(const float* rows, const Bfloat16* sum, Bfloat16* out, std::int64_t count);

// What all elements of a dropout have in common; see ops/random_draws.h for what is drawn.
struct DropoutRule {
  std::uint64_t seed, counter_high;
  std::uint64_t threshold;  // an element is kept when its word is at least this; 2^32: none is
  double kept;              // divisor of kept elements
};

template <typename T>
struct BitLoops {
  // One bit per element, set where y > 0; the bits after the last element are 0.
  void (*sign_bits)(const T* y, std::uint8_t* bits, std::int64_t count);
  // dx = addend + (bit ? dy : 0); no addend when null.
  void (*relu_grad_bits)(const T* dy, const std::uint8_t* bits, const T* addend, T* dx, std::int64_t count);
  // Elements `first`, `first` + 1, ... of the whole batch.
  void (*dropout)(const DropoutRule& rule, std::uint64_t first, const T* x, T* y, std::int64_t count);
};
template <typename T>
const BitLoops<T>& bit_loops();

// The rest works on rows of `channels` neighbors, with constants per channel.

// Normalization of a channel: y = (x - mean) scale + bias, at least zero with relu. The mean is subtracted first: where x is the
// mean, as for a single example, the result is exactly the bias.
struct Normalizer {
  const float *mean, *scale, *bias;
  bool relu;
};

// dx = addend + (of_dy dy' + of_x (x - mean) + constant)
struct NormGradient {
  const float *of_dy, *of_x, *constant;
  Normalizer normalizer;
};

template <typename T>
struct Pixel {
  const T* data;
  std::int32_t number;
};

template <typename T>
struct RowLoops {
  // sum += x - offset and squares += (x - offset)^2, per channel. An offset near the mean avoids cancellation in the squares.
  void (*moments)(const T* x, std::int64_t rows, std::int64_t channels, const float* offset, double* sum, double* squares);
  // sum += x, per channel.
  void (*column_sums)(const T* x, std::int64_t rows, std::int64_t channels, double* sum);
  void (*normalize)(const T* x, T* y, std::int64_t rows, std::int64_t channels, const Normalizer& normalizer);
  // dy' is dy where the normalizer gave a positive number, everywhere without relu: with_x += dy' (x - mean), plain += dy'.
  // Without relu only the mean is read.
  void (*gradient_sums)(const T* dy, const T* x, std::int64_t rows, std::int64_t channels, const Normalizer& normalizer,
                        double* with_x, double* plain);
  // The result is rounded before it is added to an addend, as in a separate addition.
  void (*norm_gradient)(const T* dy, const T* x, const T* addend, T* dx, std::int64_t rows, std::int64_t channels,
                        const NormGradient& gradient);
  // The largest of the pixels, per channel; a NaN is larger than any number, and the first of equals wins. Either result may be
  // null: the largest values, or the winning pixels' numbers.
  void (*largest_pixel)(const Pixel<T>* pixels, std::int64_t count, std::int64_t channels, T* largest, std::int32_t* winner);
};
template <typename T>
const RowLoops<T>& row_loops();

}  // namespace snug::backends::cpu::simd
