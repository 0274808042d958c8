// The coefficients of one SGD step, from the node's attributes and the scalars: the same for every form of momentum.
#pragma once

#include "backends/cpu/simd/update.h"
#include "ir/attributes.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"
#include "ops/updates/sgd.h"

namespace snug::backends::cpu {

class BoundUpdateRule {
 public:
  explicit BoundUpdateRule(const Attributes& attributes)
      : rule_{.learning_rate = 0,
              .momentum = static_cast<float>(attributes.real("momentum")),
              .weight_decay = static_cast<float>(attributes.real("weight_decay")),
              .gradient_scale = 1,
              .nesterov = attributes.integer("nesterov") != 0,
              .rounding = {.stochastic = ops::sgd_rounds_stochastically(attributes), .seed = 0, .counter_high = 0}},
        purpose_(ops::kRoundingPurpose + static_cast<std::uint64_t>(attributes.integer_or("key", 0))) {}

  // `factor`: the clipping factor.
  simd::UpdateRule now(const Scalars& scalars, double factor) const {
    simd::UpdateRule rule = rule_;
    rule.learning_rate = static_cast<float>(scalars.learning_rate);
    rule.gradient_scale = static_cast<float>(factor / scalars.loss_scale);
    rule.rounding.seed = scalars.seed;
    rule.rounding.counter_high = ops::counter_high(purpose_, scalars.step);
    return rule;
  }

 private:
  simd::UpdateRule rule_;
  std::uint64_t purpose_;
};

}  // namespace snug::backends::cpu
