#include "backends/cuda/sequence/embedding.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

launch::TableShape table_shape(const Type& indices, std::int64_t rows, std::int64_t columns) {
  return {.indices = static_cast<std::uint32_t>(indices.shape[0]),
          .rows = static_cast<std::uint32_t>(rows),
          .columns = static_cast<std::uint32_t>(columns)};
}

launch::TableShape shape_of_gradient(const Type& indices, const Type& gradient) {
  return table_shape(indices, gradient.shape[0], gradient.shape[1]);
}

template <typename T>
std::unique_ptr<BoundKernel> bind_embedding(const Call& call) {
  const Shape& table = call.input_shape(1);
  return call.launch([indices = call.in<std::int32_t>(0), table = call.in<T>(1), y = call.out<T>(0),
                      shape = table_shape(call.input_type(0), table[0], table[1])](cudaStream_t stream) {
    launch::embedding<T>(stream, indices, table, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad(const Call& call) {
  return call.launch([indices = call.in<std::int32_t>(0), dy = call.in<T>(1), gradient = call.out<T>(0),
                      addend = call.addend<T>(), shape = shape_of_gradient(call.input_type(0), call.output_type(0)),
                      scratch = call.workspace<void>()](cudaStream_t stream) {
    launch::embedding_grad<T>(stream, indices, dy, gradient, addend, shape, scratch);
  });
}

Bytes workspace_of_grad(const KernelQuery& query) {
  return Bytes(static_cast<std::int64_t>(launch::embedding_grad_scratch(shape_of_gradient(query.inputs[0], query.outputs[0]))));
}

constexpr Signature kSignature{.inputs = {Element::index, Element::real}};

}  // namespace

constinit const KernelDef embedding = define<[]<typename T>() { return bind_embedding<T>; }, kSignature>("cuda_embedding");
constinit const KernelDef embedding_grad =
    define<[]<typename T>() { return bind_grad<T>; }, kSignature, workspace_of_grad>("cuda_embedding_grad");

}  // namespace snug::backends::cuda
