#include "backends/cuda/sequence/row_norm.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/norm/row_shape.h"

namespace snug::backends::cuda {

namespace {

launch::RowNormShape shape_of(const Shape& x) {
  return {.rows = static_cast<std::uint32_t>(x[0]), .columns = static_cast<std::uint32_t>(x[1])};
}

float epsilon_of(const Call& call) { return static_cast<float>(call.attributes().real("epsilon")); }

template <typename T>
std::unique_ptr<BoundKernel> bind_layer_norm(const Call& call) {
  const launch::LayerNormOperands<T> operands{.x = call.in<T>(0),
                                              .weight = call.in<float>(1),
                                              .bias = call.in<float>(2),
                                              .y = call.out<T>(0),
                                              .mean = call.out<float>(1),
                                              .inverse_std = call.out<float>(2)};
  return call.launch([operands, epsilon = epsilon_of(call), shape = shape_of(call.input_shape(0))](cudaStream_t stream) {
    launch::layer_norm<T>(stream, operands, epsilon, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_rms_norm(const Call& call) {
  const launch::RmsNormOperands<T> operands{
      .x = call.in<T>(0), .weight = call.in<float>(1), .y = call.out<T>(0), .inverse_rms = call.out<float>(1)};
  return call.launch([operands, epsilon = epsilon_of(call), shape = shape_of(call.input_shape(0))](cudaStream_t stream) {
    launch::rms_norm<T>(stream, operands, epsilon, shape);
  });
}

enum class Norm : std::uint8_t { layer, rms };

// (dy, x, weight, mean?, inverse)
template <Norm Kind, typename T>
std::unique_ptr<BoundKernel> bind_grad_input(const Call& call) {
  constexpr bool kCenters = Kind == Norm::layer;
  const launch::RowNormGradOperands<T> operands{.dy = call.in<T>(0),
                                                .x = call.in<T>(1),
                                                .weight = call.in<float>(2),
                                                .mean = kCenters ? call.in<float>(3) : nullptr,
                                                .inverse = call.in<float>(kCenters ? 4 : 3),
                                                .dx = call.out<T>(0),
                                                .addend = call.addend<T>()};
  return call.launch([operands, shape = shape_of(call.input_shape(0))](cudaStream_t stream) {
    launch::row_norm_grad_input<T>(stream, operands, shape);
  });
}

// (dy, x, mean?, inverse)
template <Norm Kind, typename T>
std::unique_ptr<BoundKernel> bind_grad_parameters(const Call& call) {
  constexpr bool kCenters = Kind == Norm::layer;
  const launch::RowNormParameterOperands<T> operands{.dy = call.in<T>(0),
                                                     .x = call.in<T>(1),
                                                     .mean = kCenters ? call.in<float>(2) : nullptr,
                                                     .inverse = call.in<float>(kCenters ? 3 : 2),
                                                     .weight_gradient = call.out<float>(0),
                                                     .bias_gradient = kCenters ? call.out<float>(1) : nullptr,
                                                     .addend = call.addend<float>()};
  const launch::RowNormShape shape = shape_of(call.input_shape(0));
  return call.launch([operands, shape, sums = ColumnSums::of(shape.as_rows(), sizeof(T)), partial = call.workspace<float>()](
                         cudaStream_t stream) { launch::row_norm_grad_parameters<T>(stream, operands, shape, sums, partial); });
}

Bytes workspace_of_parameters(const KernelQuery& query) {
  const RowShape shape = shape_of(query.inputs[0].shape).as_rows();
  return Bytes(ColumnSums::of(shape, element_bytes(query.inputs[0])).workspace_bytes(shape));
}

constexpr Element kReal = Element::real;
constexpr Element kStat = Element::statistic;
constexpr Signature kLayerNorm{.inputs = {kReal, kStat, kStat}, .outputs = {kReal, kStat, kStat}};
constexpr Signature kRmsNorm{.inputs = {kReal, kStat}, .outputs = {kReal, kStat}};
constexpr Signature kLayerNormGrad{.inputs = {kReal, kReal, kStat, kStat, kStat}};
constexpr Signature kRmsNormGrad{.inputs = {kReal, kReal, kStat, kStat}};
constexpr Signature kLayerNormParameters{.inputs = {kReal, kReal, kStat, kStat}, .outputs = {kStat, kStat}};
// The sum that is added to is a statistic too.
constexpr Signature kRmsNormWeight{.inputs = {kReal, kReal, kStat, kStat}, .outputs = {kStat}};

}  // namespace

constinit const KernelDef layer_norm = define<[]<typename T>() { return bind_layer_norm<T>; }, kLayerNorm>("cuda_layer_norm");
constinit const KernelDef layer_norm_grad_input =
    define<[]<typename T>() { return bind_grad_input<Norm::layer, T>; }, kLayerNormGrad>("cuda_layer_norm_grad_input");
constinit const KernelDef layer_norm_grad_parameters =
    define<[]<typename T>() { return bind_grad_parameters<Norm::layer, T>; }, kLayerNormParameters, workspace_of_parameters>(
        "cuda_layer_norm_grad_parameters");
constinit const KernelDef rms_norm = define<[]<typename T>() { return bind_rms_norm<T>; }, kRmsNorm>("cuda_rms_norm");
constinit const KernelDef rms_norm_grad_input =
    define<[]<typename T>() { return bind_grad_input<Norm::rms, T>; }, kRmsNormGrad>("cuda_rms_norm_grad_input");
constinit const KernelDef rms_norm_grad_weight =
    define<[]<typename T>() { return bind_grad_parameters<Norm::rms, T>; }, kRmsNormWeight, workspace_of_parameters>(
        "cuda_rms_norm_grad_weight");

}  // namespace snug::backends::cuda
