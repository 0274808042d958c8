#include "backends/cuda/elementwise.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

template <typename T>
std::unique_ptr<BoundKernel> bind_relu(const Call& call) {
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), count = call.elements()](cudaStream_t stream) {
    launch::relu<T>(stream, x, y, count);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_relu_grad(const Call& call) {
  return call.launch([dy = call.in<T>(0), y = call.in<T>(1), dx = call.out<T>(0), addend = call.addend<T>(),
                      count = call.elements()](cudaStream_t stream) { launch::relu_grad<T>(stream, dy, y, dx, addend, count); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_relu_grad_bits(const Call& call) {
  return call.launch(
      [dy = call.in<T>(0), bits = call.in<std::uint8_t>(1), dx = call.out<T>(0), addend = call.addend<T>(),
       count = call.elements()](cudaStream_t stream) { launch::relu_grad_bits<T>(stream, dy, bits, dx, addend, count); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_sign_bits(const Call& call) {
  return call.launch([y = call.in<T>(0), bits = call.out<std::uint8_t>(0), count = call.elements()](cudaStream_t stream) {
    launch::sign_bits<T>(stream, y, bits, count);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_add(const Call& call) {
  return call.launch([a = call.in<T>(0), b = call.in<T>(1), y = call.out<T>(0), count = call.elements()](cudaStream_t stream) {
    launch::add<T>(stream, a, b, y, count);
  });
}

// The metrics are f64: the step's sum of losses.
std::unique_ptr<BoundKernel> bind_add_metrics(const Call& call) { return bind_add<double>(call); }

template <typename T>
std::unique_ptr<BoundKernel> bind_sgd(const Call& call) {
  const bool has_momentum = call.input_count() == 4;
  const launch::SgdOperands<T> operands{.weight = call.in<T>(0),
                                        .gradient = call.in<T>(1),
                                        .momentum = has_momentum ? call.in<T>(3) : nullptr,
                                        .new_weight = call.out<T>(0),
                                        .cleared_gradient = call.out<T>(1),
                                        .new_momentum = has_momentum ? call.out<T>(2) : nullptr,
                                        .scalars = call.scalars(2)};
  const launch::SgdConstants constants{.momentum = static_cast<float>(call.attributes().real("momentum")),
                                       .weight_decay = static_cast<float>(call.attributes().real("weight_decay")),
                                       .nesterov = call.attributes().integer("nesterov") != 0};
  return call.launch([operands, constants, count = call.elements()](cudaStream_t stream) {
    launch::sgd<T>(stream, operands, constants, count);
  });
}

constexpr Signature kByPosition{.layouts = Layouts::equal};
constexpr Signature kFromBits{.inputs = {Element::real, Element::bits}, .layouts = Layouts::equal};
constexpr Signature kToBits{.outputs = {Element::bits}, .layouts = Layouts::equal};
constexpr Signature kMetrics{.inputs = {Element::metrics, Element::metrics}, .outputs = {Element::metrics}};
constexpr Signature kSgd{.inputs = {Element::real, Element::real, Element::scalars, Element::real}, .layouts = Layouts::equal};

}  // namespace

constinit const KernelDef relu = define<bind_relu<float>, bind_relu<__half>, kByPosition>("cuda_relu");
constinit const KernelDef relu_grad = define<bind_relu_grad<float>, bind_relu_grad<__half>, kByPosition>("cuda_relu_grad");
constinit const KernelDef relu_grad_bits =
    define<bind_relu_grad_bits<float>, bind_relu_grad_bits<__half>, kFromBits>("cuda_relu_grad_bits");
constinit const KernelDef sign_bits = define<bind_sign_bits<float>, bind_sign_bits<__half>, kToBits>("cuda_sign_bits");
constinit const KernelDef add = define<bind_add<float>, bind_add<__half>, kByPosition>("cuda_add");
constinit const KernelDef add_metrics = define<bind_add_metrics, bind_add_metrics, kMetrics>("cuda_add_metrics", "add");
constinit const KernelDef sgd = define<bind_sgd<float>, bind_sgd<__half>, kSgd>("cuda_sgd");

}  // namespace snug::backends::cuda
