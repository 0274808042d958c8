#include "ops/updates/adamw.h"

#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// The gradient norm is the last input where there is one.
double factor_of(const Call& call, std::size_t at) {
  GradientNorm norm;
  if (call.inputs.size() > at) std::memcpy(&norm, call.inputs[at].data, sizeof norm);
  return norm.factor;
}

// Computed in T, one rounding per operation. Every output is written, also when it is not in place.
template <typename T>
void run_adamw(const Call& call) {
  const auto weight = call.elementwise<T>(0);
  const auto gradient = call.elementwise<T>(1);
  const auto old_first = call.elementwise<T>(3);
  const auto old_second = call.elementwise<T>(4);
  const Result<T> new_weight = call.result<T>();
  const PositionMap to_gradient(call.outputs[0].type, call.outputs[1].type);
  const PositionMap to_first(call.outputs[0].type, call.outputs[2].type);
  const PositionMap to_second(call.outputs[0].type, call.outputs[3].type);
  const auto out = [&](std::size_t output) { return reinterpret_cast<T*>(call.outputs[output].data); };

  const Scalars scalars = call.scalars(2);
  double updates = 0;
  std::memcpy(&updates, call.inputs[5].data, sizeof updates);
  const double factor = factor_of(call, 6);
  const bool skip = scalars.skip_update != 0 || !std::isfinite(factor);
  const ops::AdamwStep step(call.attributes, scalars, updates, factor);
  const T first_decay = static_cast<T>(step.first_decay);
  const T second_decay = static_cast<T>(step.second_decay);
  const T epsilon = static_cast<T>(step.epsilon);
  const T keeps = static_cast<T>(step.keeps);
  const T rate = static_cast<T>(step.rate);
  const T second_bias = static_cast<T>(step.second_bias);
  const T gradient_scale = static_cast<T>(step.gradient_scale);
  parallel_for(call, new_weight.elements(), [&](std::int64_t i) {
    T w = weight[i];
    T m = old_first[i];
    T v = old_second[i];
    if (!skip) {
      const T g = gradient[i] * gradient_scale;
      m = first_decay * m + (T{1} - first_decay) * g;
      v = second_decay * v + (T{1} - second_decay) * g * g;
      w = w * keeps - rate * (m / (std::sqrt(v) / second_bias + epsilon));
    }
    new_weight.set(i, w);
    out(1)[to_gradient(i)] = T{0};
    out(2)[to_first(i)] = m;
    out(3)[to_second(i)] = v;
  });
}

void run_count(const Call& call) {
  double updates = 0;
  std::memcpy(&updates, call.inputs[0].data, sizeof updates);
  if (call.scalars(1).skip_update == 0 && std::isfinite(factor_of(call, 2))) updates += 1;
  std::memcpy(call.outputs[0].data, &updates, sizeof updates);
}

constexpr Signature kAdamw{
    .inputs = {Element::real, Element::real, Element::scalars, Element::real, Element::real, Element::metrics, Element::metrics}};
constexpr Signature kCount{.inputs = {Element::metrics, Element::scalars, Element::metrics}, .outputs = {Element::metrics}};

}  // namespace

constinit const KernelDef adamw = define<[]<typename T>() { return run_adamw<T>; }, kAdamw>("reference_adamw");
constinit const KernelDef count_update = define<run_count, kCount>("reference_count_update");

}  // namespace snug::backends::reference
