#include "backends/cuda/kernels.h"
#include "backends/cuda/updates/adamw_call.h"

namespace snug::backends::cuda {

namespace {

// Moments are stored as M.
template <typename T, typename M>
std::unique_ptr<BoundKernel> bind_adamw(const Call& call) {
  return call.launch([operands = adamw_operands<T, M>(call, 5), constants = adamw_constants(call.attributes()),
                      count = call.elements()](cudaStream_t stream) { launch::adamw(stream, operands, constants, count); });
}

std::unique_ptr<BoundKernel> bind_count(const Call& call) {
  return call.launch([updates = call.in<double>(0), scalars = call.scalars(1),
                      norm = call.input_count() > 2 ? call.in<GradientNorm>(2) : nullptr, result = call.out<double>(0)](
                         cudaStream_t stream) { launch::count_update(stream, updates, scalars, norm, result); });
}

constexpr Signature kAdamw{
    .inputs = {Element::real, Element::real, Element::scalars, Element::real, Element::real, Element::metrics, Element::metrics}};
constexpr Signature kWideMoments{.inputs = {Element::real, Element::real, Element::scalars, Element::single, Element::single,
                                            Element::metrics, Element::metrics},
                                 .outputs = {Element::real, Element::real, Element::single, Element::single}};
constexpr Signature kCount{.inputs = {Element::metrics, Element::scalars, Element::metrics}, .outputs = {Element::metrics}};

}  // namespace

constinit const KernelDef adamw = define<[]<typename T>() { return bind_adamw<T, T>; }, kAdamw>("cuda_adamw");
constinit const KernelDef adamw_wide_moments =
    define<[]<typename T>() { return bind_adamw<T, float>; }, kWideMoments>("cuda_adamw_wide_moments", "adamw");
constinit const KernelDef count_update = define<bind_count, kCount>("cuda_count_update");

}  // namespace snug::backends::cuda
