#include "backends/cuda/updates/adamw_quantized.h"

#include "backends/cuda/kernels.h"
#include "backends/cuda/updates/adamw_call.h"

namespace snug::backends::cuda {

namespace {

template <typename T>
std::unique_ptr<BoundKernel> bind_quantized(const Call& call) {
  return call.launch([operands = adamw_operands<T, std::uint8_t>(call, 6), constants = adamw_constants(call.attributes()),
                      scales = call.in<launch::MomentPair>(5), new_scales = call.out<launch::MomentPair>(4),
                      count = call.elements()](cudaStream_t stream) {
    launch::adamw_quantized(stream, operands, constants, scales, new_scales, count);
  });
}

constexpr Signature kSignature{.inputs = {Element::real, Element::real, Element::scalars, Element::codes, Element::codes,
                                          Element::scales, Element::metrics, Element::metrics},
                               .outputs = {Element::real, Element::real, Element::codes, Element::codes, Element::scales}};

}  // namespace

constinit const KernelDef adamw_quantized =
    define<[]<typename T>() { return bind_quantized<T>; }, kSignature>("cuda_adamw_quantized");

}  // namespace snug::backends::cuda
