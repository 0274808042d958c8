#include "backends/cuda/sequence/gated_linear_unit.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ops/sequence/gated_linear_unit.h"

namespace snug::backends::cuda {

namespace {

launch::Gate gate_of(const Attributes& attributes) {
  switch (ops::gate_activation(attributes)) {
    case ops::GateActivation::sigmoid:
      return launch::Gate::sigmoid;
    case ops::GateActivation::silu:
      return launch::Gate::silu;
    case ops::GateActivation::gelu_by_tanh:
      break;
  }
  return launch::Gate::gelu_by_tanh;
}

std::uint32_t dimension(const Shape& shape, std::size_t i) { return static_cast<std::uint32_t>(shape[i]); }

template <typename T>
std::unique_ptr<BoundKernel> bind_unit(const Call& call) {
  const Shape& y = call.output_shape(0);
  return call.launch(
      [activation = gate_of(call.attributes()), x = call.in<T>(0), to = call.out<T>(0), rows = dimension(y, 0),
       half = dimension(y, 1)](cudaStream_t stream) { launch::gated_linear_unit<T>(stream, activation, x, to, rows, half); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad(const Call& call) {
  const Shape& dy = call.input_shape(0);
  return call.launch([activation = gate_of(call.attributes()), from = call.in<T>(0), x = call.in<T>(1), dx = call.out<T>(0),
                      rows = dimension(dy, 0), half = dimension(dy, 1)](cudaStream_t stream) {
    launch::gated_linear_unit_grad<T>(stream, activation, from, x, dx, rows, half);
  });
}

}  // namespace

constinit const KernelDef gated_linear_unit = define<[]<typename T>() { return bind_unit<T>; }>("cuda_gated_linear_unit");
constinit const KernelDef gated_linear_unit_grad =
    define<[]<typename T>() { return bind_grad<T>; }>("cuda_gated_linear_unit_grad");

}  // namespace snug::backends::cuda
