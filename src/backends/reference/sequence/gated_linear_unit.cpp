#include "ops/sequence/gated_linear_unit.h"

#include "backends/reference/call.h"
#include "backends/reference/gelu.h"
#include "backends/reference/kernels.h"
#include "backends/reference/sequence/sigmoid.h"

namespace snug::backends::reference {

namespace {

using ops::GateActivation;

struct Gate {
  double value, slope;
};

Gate gate_of(GateActivation activation, double x) {
  switch (activation) {
    case GateActivation::sigmoid: {
      const double s = sigmoid(x);
      return {s, s * (1 - s)};
    }
    case GateActivation::silu:
      return {silu_of(x), silu_slope(x)};
    case GateActivation::gelu_by_tanh:
      return {gelu_of(x, true), gelu_slope(x, true)};
  }
  return {};
}

template <typename T>
void run_gated_linear_unit(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<T> y = call.output<T>(0);
  const GateActivation activation = ops::gate_activation(call.attributes);
  const std::int64_t half = call.output_shape(0)[1];
  parallel_for(call, call.output_shape(0)[0], [&](std::int64_t r) {
    for (std::int64_t c = 0; c < half; ++c) y(r, c) = static_cast<T>(gate_of(activation, x(r, c)).value * x(r, half + c));
  });
}

// Both halves of x are read before their gradients are written, which may lie in their bytes.
template <typename T>
void run_grad(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const View<T> dx = call.output<T>(0);
  const GateActivation activation = ops::gate_activation(call.attributes);
  const std::int64_t half = call.input_shape(0)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    for (std::int64_t c = 0; c < half; ++c) {
      const Gate gate = gate_of(activation, x(r, c));
      const double factor = x(r, half + c);
      dx(r, c) = static_cast<T>(dy(r, c) * factor * gate.slope);
      dx(r, half + c) = static_cast<T>(dy(r, c) * gate.value);
    }
  });
}

}  // namespace

constinit const KernelDef gated_linear_unit =
    define<[]<typename T>() { return run_gated_linear_unit<T>; }>("reference_gated_linear_unit");
constinit const KernelDef gated_linear_unit_grad =
    define<[]<typename T>() { return run_grad<T>; }>("reference_gated_linear_unit_grad");

}  // namespace snug::backends::reference
