// AdamW: what all kernels share of a step.
#pragma once

#include <cmath>
#include <cstddef>
#include <string_view>

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

// What the ops adamw, adamw_scaled and adamw_quantized have in common.
void check_adamw_settings(const Attributes& settings);
void require_updates(const Type& type);
// The gradient norm, where there is an input `at`.
void require_norm(const OpCall& call, std::size_t at);
Type moment_scales_type();                   // of the first and of the second moment
Type block_scales_type(const Type& weight);  // the same for every block of codes
// Why no AdamW is fed with parts of a gradient, in UpdateFacts::fed_early.
std::string_view adamw_objection_to_feeding(const Attributes& attributes);

}  // namespace snug::ops
