#include "backends/cuda/norm/group_norm.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/norm/row_shape.h"

namespace snug::backends::cuda {

namespace {

launch::GroupShape group_shape(const Call& call, const Shape& x) {
  const RowShape rows = rows_of(x);
  return {.batch = rows.batch,
          .pixels = rows.pixels,
          .channels = rows.channels,
          .groups = static_cast<std::uint32_t>(call.attributes().integer("groups"))};
}

float epsilon_of(const Call& call) { return static_cast<float>(call.attributes().real("epsilon")); }

template <typename T>
std::unique_ptr<BoundKernel> bind_group_norm(const Call& call) {
  return call.launch([x = call.in<T>(0), weight = call.in<float>(1), bias = call.in<float>(2), y = call.out<T>(0),
                      mean = call.out<float>(1), variance = call.out<float>(2), epsilon = epsilon_of(call),
                      shape = group_shape(call, call.input_shape(0))](cudaStream_t stream) {
    launch::group_norm<T>(stream, x, weight, bias, y, mean, variance, epsilon, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_input(const Call& call) {
  const launch::GroupGradOperands<T> operands{.dy = call.in<T>(0),
                                              .x = call.in<T>(1),
                                              .mean = call.in<float>(2),
                                              .variance = call.in<float>(3),
                                              .weight = call.in<float>(4),
                                              .dx = call.out<T>(0),
                                              .addend = call.addend<T>()};
  return call.launch([operands, epsilon = epsilon_of(call), shape = group_shape(call, call.input_shape(1))](cudaStream_t stream) {
    launch::group_norm_grad_input<T>(stream, operands, epsilon, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_parameters(const Call& call) {
  return call.launch([dy = call.in<T>(0), x = call.in<T>(1), mean = call.in<float>(2), variance = call.in<float>(3),
                      weight_gradient = call.out<float>(0), bias_gradient = call.out<float>(1), epsilon = epsilon_of(call),
                      shape = group_shape(call, call.input_shape(1)),
                      sums = ColumnSums::of(rows_of(call.input_shape(1)), sizeof(T)),
                      partial = call.workspace<float>()](cudaStream_t stream) {
    launch::group_norm_grad_parameters<T>(stream, dy, x, mean, variance, weight_gradient, bias_gradient, epsilon, shape, sums,
                                          partial);
  });
}

Bytes workspace_of_parameters(const KernelQuery& query) {
  const RowShape shape = rows_of(query.inputs[1].shape);
  return Bytes(ColumnSums::of(shape, element_bytes(query.inputs[1])).workspace_bytes(shape));
}

constexpr Element kStat = Element::statistic;
constexpr Signature kGroupNorm{
    .inputs = {Element::real, kStat, kStat}, .outputs = {Element::real, kStat, kStat}, .layouts = Layouts::images};
constexpr Signature kGradInput{.inputs = {Element::real, Element::real, kStat, kStat, kStat}, .layouts = Layouts::images};
constexpr Signature kGradParameters{
    .inputs = {Element::real, Element::real, kStat, kStat}, .outputs = {kStat, kStat}, .layouts = Layouts::images};

}  // namespace

constinit const KernelDef group_norm = define<[]<typename T>() { return bind_group_norm<T>; }, kGroupNorm>("cuda_group_norm");
constinit const KernelDef group_norm_grad_input =
    define<[]<typename T>() { return bind_grad_input<T>; }, kGradInput>("cuda_group_norm_grad_input");
constinit const KernelDef group_norm_grad_parameters =
    define<[]<typename T>() { return bind_grad_parameters<T>; }, kGradParameters, workspace_of_parameters>(
        "cuda_group_norm_grad_parameters");

}  // namespace snug::backends::cuda
