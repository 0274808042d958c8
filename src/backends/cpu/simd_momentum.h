// The update with a momentum in 8 bits, vectorised by Highway; ops/quantised_momentum.h says what is computed. One thread each.
#pragma once

#include <cstdint>

namespace snug::backends::cpu::simd {

struct QuantisedSgdRule {
  float learning_rate, momentum, weight_decay, gradient_scale;
  bool nesterov;
};

// Where a block is read and written: the same places or others.
struct QuantisedSgdBlock {
  const float *weight, *gradient;
  const std::uint8_t* codes;
  float scale;
  float *new_weight, *new_gradient;
  std::uint8_t* new_codes;
  float* new_scale;
};

// One block: at most ops::kMomentumBlock elements.
void sgd_quantised(const QuantisedSgdRule& rule, const QuantisedSgdBlock& block, std::int64_t count);

}  // namespace snug::backends::cpu::simd
