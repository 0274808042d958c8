#include "backends/cuda/sequence/dynamic_conv.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ops/sequence/dynamic_conv.h"

namespace snug::backends::cuda {

namespace {

launch::DynamicConvShape shape_of(const Shape& rows, const Shape& weight, const Attributes& attributes) {
  const auto g = ops::DynamicConvGeometry::from(rows, attributes);
  const auto narrowed = [](std::int64_t number) { return static_cast<std::uint32_t>(number); };
  return {.rows = narrowed(g.rows()),
          .length = narrowed(g.length),
          .columns = narrowed(g.columns),
          .heads = narrowed(g.heads),
          .head_size = narrowed(g.head_size()),
          .kernel = narrowed(g.kernel),
          .left = narrowed(g.left),
          .weights_of_row = narrowed(g.weights_of_row(weight))};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_forward(const Call& call) {
  return call.launch([x = call.in<T>(0), weight = call.in<T>(1), y = call.out<T>(0),
                      shape = shape_of(call.input_shape(0), call.input_shape(1), call.attributes())](cudaStream_t stream) {
    launch::dynamic_conv<T>(stream, x, weight, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_input(const Call& call) {
  return call.launch([dy = call.in<T>(0), weight = call.in<T>(1), dx = call.out<T>(0), addend = call.addend<T>(),
                      shape = shape_of(call.input_shape(0), call.input_shape(1), call.attributes())](cudaStream_t stream) {
    launch::dynamic_conv_grad_input<T>(stream, dy, weight, dx, addend, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_weights_of_rows(const Call& call) {
  return call.launch([dy = call.in<T>(0), x = call.in<T>(1), dweight = call.out<T>(0), addend = call.addend<T>(),
                      shape = shape_of(call.input_shape(0), call.output_shape(0), call.attributes())](cudaStream_t stream) {
    launch::dynamic_conv_grad_weight<T>(stream, dy, x, dweight, addend, shape);
  });
}

Bytes partial_sums(const KernelQuery& query) {
  const auto shape = shape_of(query.inputs[0].shape, query.outputs[0].shape, query.attributes);
  return Bytes(launch::DynamicConvChunks::of(shape).workspace_bytes(shape));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_shared_weights(const Call& call) {
  return call.launch([dy = call.in<T>(0), x = call.in<T>(1), dweight = call.out<T>(0), addend = call.addend<T>(),
                      partial = call.workspace<float>(),
                      shape = shape_of(call.input_shape(0), call.output_shape(0), call.attributes())](cudaStream_t stream) {
    launch::lightweight_conv_grad_weight<T>(stream, dy, x, dweight, addend, partial, shape);
  });
}

}  // namespace

constinit const KernelDef lightweight_conv = define<[]<typename T>() { return bind_forward<T>; }>("cuda_lightweight_conv");
constinit const KernelDef lightweight_conv_grad_input =
    define<[]<typename T>() { return bind_grad_input<T>; }>("cuda_lightweight_conv_grad_input");
constinit const KernelDef lightweight_conv_grad_weight =
    define<[]<typename T>() { return bind_shared_weights<T>; }, Signature{}, partial_sums>("cuda_lightweight_conv_grad_weight");
constinit const KernelDef dynamic_conv = define<[]<typename T>() { return bind_forward<T>; }>("cuda_dynamic_conv");
constinit const KernelDef dynamic_conv_grad_input =
    define<[]<typename T>() { return bind_grad_input<T>; }>("cuda_dynamic_conv_grad_input");
constinit const KernelDef dynamic_conv_grad_weight =
    define<[]<typename T>() { return bind_weights_of_rows<T>; }>("cuda_dynamic_conv_grad_weight");

}  // namespace snug::backends::cuda
