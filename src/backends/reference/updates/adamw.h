// One step of AdamW, as the ops adamw, adamw_scaled and adamw_quantized make it.
#pragma once

#include <cmath>

#include "backends/reference/call.h"
#include "ops/updates/adamw.h"

namespace snug::backends::reference {

// The gradient norm is the input `at`, where there is one.
inline double clipping_factor(const Call& call, std::size_t at) {
  GradientNorm norm;
  if (call.inputs.size() > at) std::memcpy(&norm, call.inputs[at].data, sizeof norm);
  return norm.factor;
}

inline bool skips_update(const Call& call, std::size_t scalars, std::size_t norm) {
  return call.scalars(scalars).skip_update != 0 || !std::isfinite(clipping_factor(call, norm));
}

// Computed in T, one rounding per operation.
template <typename T>
class AdamwRule {
 public:
  // The inputs `updates` and `norm` are the count of updates and the gradient norm, where there is one.
  AdamwRule(const Call& call, std::size_t updates, std::size_t norm) : AdamwRule(step_of(call, updates, norm)) {}

  // The new weight; m and v become the new moments.
  T step(T weight, T gradient, T& m, T& v) const {
    move(gradient, m, v);
    return moved(weight, m, v);
  }
  // By moments that are new already.
  T moved(T weight, T m, T v) const { return weight * keeps_ - rate_ * (m / (std::sqrt(v) / second_bias_ + epsilon_)); }
  void move(T gradient, T& m, T& v) const {
    const T g = gradient * gradient_scale_;
    m = first_decay_ * m + (T{1} - first_decay_) * g;
    v = second_decay_ * v + (T{1} - second_decay_) * g * g;
  }

 private:
  explicit AdamwRule(const ops::AdamwStep& step)
      : first_decay_(static_cast<T>(step.first_decay)),
        second_decay_(static_cast<T>(step.second_decay)),
        epsilon_(static_cast<T>(step.epsilon)),
        keeps_(static_cast<T>(step.keeps)),
        rate_(static_cast<T>(step.rate)),
        second_bias_(static_cast<T>(step.second_bias)),
        gradient_scale_(static_cast<T>(step.gradient_scale)) {}

  static ops::AdamwStep step_of(const Call& call, std::size_t at, std::size_t norm) {
    double updates = 0;
    std::memcpy(&updates, call.inputs[at].data, sizeof updates);
    return {call.attributes, call.scalars(2), updates, clipping_factor(call, norm)};
  }

  T first_decay_, second_decay_, epsilon_, keeps_, rate_, second_bias_, gradient_scale_;
};

}  // namespace snug::backends::reference
