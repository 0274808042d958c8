#include "backends/cuda/updates/gradient_norm.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"

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

constexpr Signature kSum{.inputs = {Element::real, Element::metrics}, .outputs = {Element::metrics}, .layouts = Layouts::any};
constexpr Signature kFactor{.inputs = {Element::metrics, Element::scalars}, .outputs = {Element::metrics}};
constexpr Signature kFinite{.inputs = {Element::metrics}, .outputs = {Element::metrics}};

}  // namespace

constinit const KernelDef sum_of_squares =
    define<[]<typename T>() { return bind_sum<T>; }, kSum, workspace_of_squares>("cuda_sum_of_squares");
constinit const KernelDef clip_factor = define<bind_factor, kFactor>("cuda_clip_factor");
constinit const KernelDef finite_factor = define<bind_finite, kFinite>("cuda_finite_factor");

}  // namespace snug::backends::cuda
