#include "backends/cuda/sequence/positions.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ir/example_rows.h"

namespace snug::backends::cuda {

namespace {

launch::PositionShape shape_of(const Call& call, std::int64_t positions_of_table) {
  const Shape& x = call.input_shape(0);
  return {.rows = static_cast<std::uint32_t>(x[0]),
          .columns = static_cast<std::uint32_t>(x[1]),
          .length = static_cast<std::uint32_t>(rows_per_example(call.attributes())),
          .positions_of_table = static_cast<std::uint32_t>(positions_of_table)};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_add(const Call& call) {
  return call.launch([x = call.in<T>(0), table = call.in<T>(1), y = call.out<T>(0),
                      shape = shape_of(call, call.input_shape(1)[0])](cudaStream_t stream) {
    launch::add_positions<T>(stream, x, table, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_add_at(const Call& call) {
  return call.launch([x = call.in<T>(0), table = call.in<T>(1), positions = call.in<std::int32_t>(2), y = call.out<T>(0),
                      shape = shape_of(call, call.input_shape(1)[0])](cudaStream_t stream) {
    launch::add_positions_at<T>(stream, x, table, positions, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad(const Call& call) {
  return call.launch([dy = call.in<T>(0), gradient = call.out<T>(0), addend = call.addend<T>(),
                      shape = shape_of(call, call.output_shape(0)[0])](cudaStream_t stream) {
    launch::add_positions_grad<T>(stream, dy, gradient, addend, shape);
  });
}

constexpr Signature kAt{.inputs = {Element::real, Element::real, Element::index}};

}  // namespace

constinit const KernelDef add_positions = define<[]<typename T>() { return bind_add<T>; }>("cuda_add_positions");
constinit const KernelDef add_positions_at = define<[]<typename T>() { return bind_add_at<T>; }, kAt>("cuda_add_positions_at");
constinit const KernelDef add_positions_grad = define<[]<typename T>() { return bind_grad<T>; }>("cuda_add_positions_grad");

}  // namespace snug::backends::cuda
