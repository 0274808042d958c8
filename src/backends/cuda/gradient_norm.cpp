#include "backends/cuda/gradient_norm.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ops/sgd.h"

namespace snug::backends::cuda {

namespace {

Bytes workspace_of_squares(const KernelQuery& query) {
  const std::uint32_t blocks = blocks_of_squares(query.inputs[0].elements());
  return Bytes(blocks == 1 ? 0 : blocks * static_cast<std::int64_t>(sizeof(double)));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_sum(const Call& call) {
  return call.launch([x = call.in<T>(0), before = call.input_count() == 2 ? call.in<double>(1) : nullptr,
                      sum = call.out<double>(0), partial = call.workspace<double>(), count = call.input_type(0).elements()](
                         cudaStream_t stream) { launch::sum_of_squares<T>(stream, x, before, sum, partial, count); });
}

std::unique_ptr<BoundKernel> bind_factor(const Call& call) {
  return call.launch([sum = call.in<double>(0), scalars = call.scalars(1), result = call.out<GradientNorm>(0)](
                         cudaStream_t stream) { launch::clip_factor(stream, sum, scalars, result); });
}

std::unique_ptr<BoundKernel> bind_finite(const Call& call) {
  return call.launch([metrics = call.in<Metrics>(0), result = call.out<GradientNorm>(0)](cudaStream_t stream) {
    launch::finite_factor(stream, metrics, result);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_clipped_sgd(const Call& call) {
  const bool has_momentum = ops::sgd_has_momentum(call.attributes());
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
  return call.launch([operands, constants, norm = call.in<GradientNorm>(call.input_count() - 1), count = call.elements()](
                         cudaStream_t stream) { launch::clipped_sgd<T>(stream, operands, constants, norm, count); });
}

constexpr Signature kSum{.inputs = {Element::real, Element::metrics}, .outputs = {Element::metrics}, .layouts = Layouts::any};
constexpr Signature kFactor{.inputs = {Element::metrics, Element::scalars}, .outputs = {Element::metrics}};
constexpr Signature kFinite{.inputs = {Element::metrics}, .outputs = {Element::metrics}};
// Momentum and norm are told apart by their dtypes: a node goes with one of the two, and never with the kernel that does not
// clip.
constexpr Signature kClipped{.inputs = {Element::real, Element::real, Element::scalars, Element::metrics},
                             .layouts = Layouts::equal};
constexpr Signature kClippedWithMomentum{
    .inputs = {Element::real, Element::real, Element::scalars, Element::real, Element::metrics}, .layouts = Layouts::equal};

}  // namespace

constinit const KernelDef sum_of_squares =
    define<bind_sum<float>, bind_sum<__half>, kSum, workspace_of_squares>("cuda_sum_of_squares");
constinit const KernelDef clip_factor = define<bind_factor, bind_factor, kFactor>("cuda_clip_factor");
constinit const KernelDef finite_factor = define<bind_finite, bind_finite, kFinite>("cuda_finite_factor");
constinit const KernelDef clipped_sgd =
    define<bind_clipped_sgd<float>, bind_clipped_sgd<__half>, kClipped>("cuda_clipped_sgd", "sgd");
constinit const KernelDef clipped_sgd_with_momentum =
    define<bind_clipped_sgd<float>, bind_clipped_sgd<__half>, kClippedWithMomentum>("cuda_clipped_sgd_with_momentum", "sgd");

}  // namespace snug::backends::cuda
