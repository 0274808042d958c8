#include "backends/cuda/sequence/softmax.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

launch::SoftmaxShape shape_of(const Shape& shape) {
  const std::int64_t columns = shape.dims().back();
  return {.rows = static_cast<std::uint32_t>(shape.elements() / columns), .columns = static_cast<std::uint32_t>(columns)};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_softmax(const Call& call) {
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), shape = shape_of(call.input_shape(0))](cudaStream_t stream) {
    launch::softmax<T>(stream, x, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad(const Call& call) {
  return call.launch([dy = call.in<T>(0), y = call.in<T>(1), dx = call.out<T>(0), shape = shape_of(call.input_shape(1))](
                         cudaStream_t stream) { launch::softmax_grad<T>(stream, dy, y, dx, shape); });
}

}  // namespace

constinit const KernelDef softmax = define<[]<typename T>() { return bind_softmax<T>; }>("cuda_softmax");
constinit const KernelDef softmax_grad = define<[]<typename T>() { return bind_grad<T>; }>("cuda_softmax_grad");

}  // namespace snug::backends::cuda
