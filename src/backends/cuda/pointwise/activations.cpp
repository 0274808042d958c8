#include "backends/cuda/pointwise/activations.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

using launch::Activation;

Activation silu_of(const Attributes& /*attributes*/) { return Activation::silu; }
Activation gelu_of(const Attributes& attributes) {
  return attributes.integer("tanh") != 0 ? Activation::gelu_by_tanh : Activation::gelu;
}

template <auto KindOf, typename T>
std::unique_ptr<BoundKernel> bind(const Call& call) {
  return call.launch([kind = KindOf(call.attributes()), x = call.in<T>(0), y = call.out<T>(0),
                      count = call.elements()](cudaStream_t stream) { launch::activation<T>(stream, kind, x, y, count); });
}

template <auto KindOf, typename T>
std::unique_ptr<BoundKernel> bind_grad(const Call& call) {
  return call.launch(
      [kind = KindOf(call.attributes()), dy = call.in<T>(0), x = call.in<T>(1), dx = call.out<T>(0), addend = call.addend<T>(),
       count = call.elements()](cudaStream_t stream) { launch::activation_grad<T>(stream, kind, dy, x, dx, addend, count); });
}

}  // namespace

constinit const KernelDef gelu = define<[]<typename T>() { return bind<gelu_of, T>; }>("cuda_gelu");
constinit const KernelDef gelu_grad = define<[]<typename T>() { return bind_grad<gelu_of, T>; }>("cuda_gelu_grad");
constinit const KernelDef silu = define<[]<typename T>() { return bind<silu_of, T>; }>("cuda_silu");
constinit const KernelDef silu_grad = define<[]<typename T>() { return bind_grad<silu_of, T>; }>("cuda_silu_grad");

}  // namespace snug::backends::cuda
