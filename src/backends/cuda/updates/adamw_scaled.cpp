#include "backends/cuda/updates/adamw_scaled.h"

#include "backends/cuda/kernels.h"
#include "backends/cuda/updates/adamw_call.h"

namespace snug::backends::cuda {

namespace {

Bytes workspace_of(const KernelQuery& query) { return Bytes(launch::moment_scratch_bytes(query.inputs[0].elements())); }

template <typename T>
std::unique_ptr<BoundKernel> bind_scaled(const Call& call) {
  return call.launch([operands = adamw_operands<T, __half>(call, 6), constants = adamw_constants(call.attributes()),
                      scales = call.in<launch::MomentPair>(5), new_scales = call.out<launch::MomentPair>(4),
                      scratch = call.workspace<launch::MomentScratch>(), count = call.elements()](cudaStream_t stream) {
    launch::adamw_scaled(stream, operands, constants, scales, new_scales, scratch, count);
  });
}

constexpr Signature kSignature{.inputs = {Element::real, Element::real, Element::scalars, Element::halves, Element::halves,
                                          Element::single, Element::metrics, Element::metrics},
                               .outputs = {Element::real, Element::real, Element::halves, Element::halves, Element::single}};

}  // namespace

constinit const KernelDef adamw_scaled =
    define<[]<typename T>() { return bind_scaled<T>; }, kSignature, workspace_of>("cuda_adamw_scaled");

}  // namespace snug::backends::cuda
