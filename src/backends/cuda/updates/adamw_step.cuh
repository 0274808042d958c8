// One step of AdamW, whatever its moments are stored in.
#pragma once

#include "backends/cuda/device_code.cuh"
#include "backends/cuda/updates/adamw.h"

namespace snug::backends::cuda::launch {

__device__ inline bool skips_update(const Scalars& scalars, double factor) {
  return scalars.skip_update != 0 || !isfinite(factor);
}

// The clipping factor.
template <typename T, typename M>
__device__ double factor_of(const AdamwOperands<T, M>& o) {
  return o.norm == nullptr ? 1.0 : o.norm->factor;
}

// ops::AdamwStep, in float: the same for every element.
struct AdamwStep {
  float first_decay, second_decay, epsilon, keeps, rate, second_bias, gradient_scale;

  AdamwStep() = default;
  __device__ AdamwStep(const AdamwConstants& c, const Scalars& scalars, double updates, double factor)
      : first_decay(static_cast<float>(c.first_decay)),
        second_decay(static_cast<float>(c.second_decay)),
        epsilon(static_cast<float>(c.epsilon)),
        keeps(static_cast<float>(1 - scalars.learning_rate * c.weight_decay)),
        rate(static_cast<float>(scalars.learning_rate / (1 - pow(c.first_decay, updates)))),
        second_bias(static_cast<float>(sqrt(1 - pow(c.second_decay, updates)))),
        gradient_scale(static_cast<float>(factor / scalars.loss_scale)) {}

  // The new weight; m and v become the new moments. One rounding per operation.
  __device__ float operator()(float w, float gradient, float& m, float& v) const {
    const float g = gradient * gradient_scale;
    m = first_decay * m + (1.0F - first_decay) * g;
    v = second_decay * v + (1.0F - second_decay) * g * g;
    return w * keeps - rate * (m / (sqrtf(v) / second_bias + epsilon));
  }
};

}  // namespace snug::backends::cuda::launch
