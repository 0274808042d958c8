// Update rules on stored numbers, vectorized by Highway: AdamW, and SGD with a plain momentum or one that gradients are added to
// (ops/updates/momentum.cpp); both also with states in 8 bits (ops/updates/block_code.h says how they are stored). T is float,
// Bfloat16 or Half. One thread each.
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"

namespace snug::backends::cpu::simd {

// 16-bit numbers are rounded stochastically, keyed by these (ops::rounding_word), or to nearest.
struct Rounding {
  bool stochastic;
  std::uint64_t seed, counter_high;
  std::int64_t first_element = 0;  // index of element 0; a multiple of 4
};

struct UpdateRule {
  float learning_rate, momentum, weight_decay;
  float gradient_scale;  // 1 / loss scale, and what clips
  bool nesterov;
  Rounding rounding;
};

// Where the weight, gradient and momentum are read and written: the same places or others; no momentum when null.
template <typename T>
struct SgdArrays {
  const T *weight, *gradient, *momentum;
  T *new_weight, *new_gradient, *new_momentum;
};

// One block of a state in 8 bits.
struct CodedBlock {
  const std::uint8_t* codes;
  float scale;
  std::uint8_t* new_codes;
  float* new_scale;
};

// The same for one block of a momentum in 8 bits.
template <typename T>
struct QuantizedSgdBlock {
  const T *weight, *gradient;
  T *new_weight, *new_gradient;
  CodedBlock momentum;
};

struct AdamwRule {
  float first_decay, second_decay;  // beta1, beta2
  float epsilon;
  float keeps;           // of the weight: 1 - learning rate * weight decay
  float rate;            // learning rate / (1 - beta1^t)
  float second_bias;     // sqrt(1 - beta2^t)
  float gradient_scale;  // 1 / loss scale, and what clips
  Rounding rounding;
};

// Where everything is read and written: the same places or others. Moments are stored as M.
template <typename T, typename M>
struct AdamwArrays {
  const T *weight, *gradient;
  const M *first, *second;
  T *new_weight, *new_gradient;
  M *new_first, *new_second;
};

// For one block of moments in 8 bits.
template <typename T>
struct QuantizedAdamwBlock {
  const T *weight, *gradient;
  T *new_weight, *new_gradient;
  CodedBlock first, second;
};

// Two numbers about the first and the second moments of a tensor, or of a block.
struct MomentPair {
  float first, second;
};

template <typename T>
struct Combination {
  const T *one, *other;
  T* out;
  bool is_weight;  // the result is rounded as a weight, or as a momentum
};

template <typename T>
struct UpdateLoops {
  // One step of SGD for elements [first, first + count); clears the gradient. `first` is a multiple of 4.
  void (*sgd)(const UpdateRule& rule, const SgdArrays<T>& arrays, std::int64_t first, std::int64_t count);
  // One step of AdamW (ops/updates/adamw.cpp), one rounding per operation; clears the gradient. `first` is a multiple of 4.
  void (*adamw)(const AdamwRule& rule, const AdamwArrays<T, T>& arrays, std::int64_t first, std::int64_t count);
  void (*adamw_with_floats)(const AdamwRule& rule, const AdamwArrays<T, float>& arrays, std::int64_t first, std::int64_t count);
  // The same with moments in halves times a scale (ops/updates/scaled_moments.h): the largest sizes of the new moments that are
  // finite, and the step with moments stored in new scales.
  MomentPair (*largest_moments)(const AdamwRule& rule, const AdamwArrays<T, Half>& arrays, MomentPair scales, std::int64_t first,
                                std::int64_t count);
  void (*adamw_scaled)(const AdamwRule& rule, const AdamwArrays<T, Half>& arrays, MomentPair scales, MomentPair new_scales,
                       std::int64_t first, std::int64_t count);
  // One block, of at most ops::kCodeBlock elements, from element `first` of the weight on.
  void (*sgd_quantized)(const UpdateRule& rule, const QuantizedSgdBlock<T>& block, std::int64_t first, std::int64_t count);
  void (*adamw_quantized)(const AdamwRule& rule, const QuantizedAdamwBlock<T>& block, std::int64_t first, std::int64_t count);
  // out = a one + b other for elements [first, first + count); `first` is a multiple of 4.
  void (*combine)(const Combination<T>& arrays, float a, float b, const Rounding& rounding, std::int64_t first,
                  std::int64_t count);
};
template <typename T>
const UpdateLoops<T>& update_loops();

}  // namespace snug::backends::cpu::simd
