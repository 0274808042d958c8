// Updates whose momentum is in 8 bits (ops/quantised_momentum.h says what is computed), or gathers gradients by itself
// (ops/momentum.cpp), vectorised by Highway. T is float, Bfloat16 or Half. One thread each.
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"

namespace snug::backends::cpu::simd {

// Numbers of 16 bits are rounded by chance, keyed by these (ops::rounding_word), or to nearest.
struct Rounding {
  bool stochastic;
  std::uint64_t seed, counter_high;
  std::int64_t first_element = 0;  // what element 0 is counted as; a multiple of 4
};

struct QuantisedSgdRule {
  float learning_rate, momentum, weight_decay, gradient_scale;
  bool nesterov;
  Rounding rounding;
};

// Where a block is read and written: the same places or others.
template <typename T>
struct QuantisedSgdBlock {
  const T *weight, *gradient;
  const std::uint8_t* codes;
  float scale;
  T *new_weight, *new_gradient;
  std::uint8_t* new_codes;
  float* new_scale;
};

// One block, of at most ops::kMomentumBlock elements, from element `first` of the weight on.
template <typename T>
void sgd_quantised(const QuantisedSgdRule& rule, const QuantisedSgdBlock<T>& block, std::int64_t first, std::int64_t count);

// out = a one + b other for elements [first, first + count); `first` is a multiple of 4.
template <typename T>
struct Combination {
  const T *one, *other;
  T* out;
  bool is_weight;  // what comes out is rounded as a weight, or as a momentum
};
template <typename T>
void combine(const Combination<T>& arrays, float a, float b, const Rounding& rounding, std::int64_t first, std::int64_t count);

}  // namespace snug::backends::cpu::simd
