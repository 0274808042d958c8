// The coefficients of one AdamW step, from the node's attributes and what changes between steps: the same for every form of
// moments.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cpu/simd/update.h"
#include "backends/cpu/storage.h"
#include "ir/kernel.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"
#include "ops/updates/adamw.h"
#include "ops/updates/sgd.h"

namespace snug::backends::cpu {

class BoundAdamwRule {
 public:
  // `norm`: nullptr where gradients are not clipped.
  BoundAdamwRule(const Attributes& attributes, const Scalars* scalars, const double* updates, const GradientNorm* norm)
      : attributes_(attributes),
        scalars_(scalars),
        updates_(updates),
        norm_(norm),
        stochastic_(ops::sgd_rounds_stochastically(attributes)),
        purpose_(ops::kRoundingPurpose + static_cast<std::uint64_t>(attributes.integer_or("key", 0))) {}

  // Nothing where this step is skipped.
  std::optional<simd::AdamwRule> now() const {
    const double factor = norm_ == nullptr ? 1 : norm_->factor;
    if (scalars_->skip_update != 0 || !std::isfinite(factor)) return std::nullopt;
    const ops::AdamwStep step(attributes_, *scalars_, *updates_, factor);
    return simd::AdamwRule{
        .first_decay = static_cast<float>(step.first_decay),
        .second_decay = static_cast<float>(step.second_decay),
        .epsilon = static_cast<float>(step.epsilon),
        .keeps = static_cast<float>(step.keeps),
        .rate = static_cast<float>(step.rate),
        .second_bias = static_cast<float>(step.second_bias),
        .gradient_scale = static_cast<float>(step.gradient_scale),
        .rounding = {
            .stochastic = stochastic_, .seed = scalars_->seed, .counter_high = ops::counter_high(purpose_, scalars_->step)}};
  }

 private:
  Attributes attributes_;
  const Scalars* scalars_;
  const double* updates_;
  const GradientNorm* norm_;
  bool stochastic_;
  std::uint64_t purpose_;
};

// Of a node whose inputs end with the count of updates at `at` and perhaps the gradient norm.
inline BoundAdamwRule adamw_rule_of(const KernelArguments& arguments, std::size_t at) {
  const auto* norm =
      arguments.inputs.size() > at + 1 ? reinterpret_cast<const GradientNorm*>(arguments.inputs[at + 1].data) : nullptr;
  return {arguments.attributes, reinterpret_cast<const Scalars*>(arguments.inputs[2].data),
          reinterpret_cast<const double*>(arguments.inputs[at].data), norm};
}

// A step that is skipped clears the gradient and leaves the rest as it was.
template <typename T, typename M>
void skip_adamw(const simd::AdamwArrays<T, M>& arrays, std::int64_t count) {
  const auto keep = [&](const auto* from, auto* to) {
    if (to != from) std::copy_n(from, count, to);
  };
  keep(arrays.weight, arrays.new_weight);
  keep(arrays.first, arrays.new_first);
  keep(arrays.second, arrays.new_second);
  std::fill_n(arrays.new_gradient, count, T{});
}

template <typename T, typename M>
simd::AdamwArrays<T, M> adamw_arrays(const KernelArguments& arguments) {
  return {.weight = elements<T>(arguments.inputs[0]),
          .gradient = elements<T>(arguments.inputs[1]),
          .first = elements<M>(arguments.inputs[3]),
          .second = elements<M>(arguments.inputs[4]),
          .new_weight = elements<T>(arguments.outputs[0]),
          .new_gradient = elements<T>(arguments.outputs[1]),
          .new_first = elements<M>(arguments.outputs[2]),
          .new_second = elements<M>(arguments.outputs[3])};
}

}  // namespace snug::backends::cpu
