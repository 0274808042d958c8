#include "backends/cuda/pointwise/elementwise.h"

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

constexpr Signature kFromBits{.inputs = {Element::real, Element::bits}};
constexpr Signature kToBits{.outputs = {Element::bits}};
constexpr Signature kMetrics{.inputs = ElementList().and_all(Element::metrics), .outputs = {Element::metrics}};

}  // namespace

constinit const KernelDef relu = define<[]<typename T>() { return bind_relu<T>; }>("cuda_relu");
constinit const KernelDef relu_grad = define<[]<typename T>() { return bind_relu_grad<T>; }>("cuda_relu_grad");
constinit const KernelDef relu_grad_bits =
    define<[]<typename T>() { return bind_relu_grad_bits<T>; }, kFromBits>("cuda_relu_grad_bits");
constinit const KernelDef sign_bits = define<[]<typename T>() { return bind_sign_bits<T>; }, kToBits>("cuda_sign_bits");
constinit const KernelDef add = define<[]<typename T>() { return bind_add<T>; }>("cuda_add");
constinit const KernelDef add_metrics = define<bind_add_metrics, kMetrics>("cuda_add_metrics", "add");

}  // namespace snug::backends::cuda
