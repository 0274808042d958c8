// AdamW: what all kernels share of a step, and how moments are stored in 16 bits. Gradients of neighboring layers differ by
// orders of magnitude, and their squares by twice as many: as plain halves most second moments would round to zero, and training
// diverges (Sohoni et al., "Low-Memory Neural Network Training", section 4.3.1). So a tensor's moments are halves times a scale,
// one for each of the two moments: a power of two, chosen anew in every step so that the largest moment is just below the largest
// half.
#pragma once

#include <cmath>
#include <cstddef>

#include "base/philox.h"
#include "ir/attributes.h"
#include "ir/op.h"
#include "ir/scalars.h"

namespace snug::ops {

// The coefficients of one step.
struct AdamwStep {
  double first_decay, second_decay;  // beta1, beta2
  double epsilon;
  double keeps;           // of the weight: 1 - learning rate * weight decay
  double rate;            // learning rate / (1 - beta1^t)
  double second_bias;     // sqrt(1 - beta2^t)
  double gradient_scale;  // 1 / loss scale, times the clipping factor

  // `updates`: made so far, this one included. `factor`: the clipping factor.
  AdamwStep(const Attributes& attributes, const Scalars& scalars, double updates, double factor)
      : first_decay(attributes.real("beta1")),
        second_decay(attributes.real("beta2")),
        epsilon(attributes.real("epsilon")),
        keeps(1 - scalars.learning_rate * attributes.real("weight_decay")),
        rate(scalars.learning_rate / (1 - std::pow(first_decay, updates))),
        second_bias(std::sqrt(1 - std::pow(second_decay, updates))),
        gradient_scale(factor / scalars.loss_scale) {}
};

// Of the largest of a tensor's first or second moments, which is finite. That moment is then stored as 2^14 to 2^15: stochastic
// rounding cannot make it infinite. Moments that are all tiny need no smaller scale, whose inverse would overflow.
SNUG_HOST_DEVICE inline float moment_scale(float largest) {
  const int exponent = std::ilogb(largest);  // very negative for 0
  return std::ldexp(1.0F, (exponent < -100 ? -100 : exponent) - 14);
}

// A second moment that is above 0 is stored as at least the smallest half. As 0 beside a first moment that is not, it would
// make the step m / epsilon.
inline constexpr float kLeastStoredMoment = 0x1p-24F;

// What the ops adamw and adamw_scaled have in common.
void check_adamw_settings(const Attributes& settings);
void require_updates(const Type& type);
// The gradient norm, where there is an input `at`.
void require_norm(const OpCall& call, std::size_t at);
Type moment_scales_type();  // of the first and of the second moment

}  // namespace snug::ops
