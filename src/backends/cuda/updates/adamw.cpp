#include "backends/cuda/updates/adamw.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ops/updates/sgd.h"

namespace snug::backends::cuda {

namespace {

template <typename T>
std::unique_ptr<BoundKernel> bind_adamw(const Call& call) {
  const Attributes& attributes = call.attributes();
  const launch::AdamwOperands<T, T> operands{.weight = call.in<T>(0),
                                             .gradient = call.in<T>(1),
                                             .first = call.in<T>(3),
                                             .second = call.in<T>(4),
                                             .new_weight = call.out<T>(0),
                                             .cleared_gradient = call.out<T>(1),
                                             .new_first = call.out<T>(2),
                                             .new_second = call.out<T>(3),
                                             .scalars = call.scalars(2),
                                             .updates = call.in<double>(5),
                                             .norm = call.input_count() > 6 ? call.in<GradientNorm>(6) : nullptr};
  const launch::AdamwConstants constants{.first_decay = attributes.real("beta1"),
                                         .second_decay = attributes.real("beta2"),
                                         .epsilon = attributes.real("epsilon"),
                                         .weight_decay = attributes.real("weight_decay"),
                                         .stochastic = ops::sgd_rounds_stochastically(attributes),
                                         .key = static_cast<std::uint64_t>(attributes.integer_or("key", 0))};
  return call.launch([operands, constants, count = call.elements()](cudaStream_t stream) {
    launch::adamw<T, T>(stream, operands, constants, count);
  });
}

std::unique_ptr<BoundKernel> bind_count(const Call& call) {
  return call.launch([updates = call.in<double>(0), scalars = call.scalars(1),
                      norm = call.input_count() > 2 ? call.in<GradientNorm>(2) : nullptr, result = call.out<double>(0)](
                         cudaStream_t stream) { launch::count_update(stream, updates, scalars, norm, result); });
}

constexpr Signature kAdamw{
    .inputs = {Element::real, Element::real, Element::scalars, Element::real, Element::real, Element::metrics, Element::metrics}};
constexpr Signature kCount{.inputs = {Element::metrics, Element::scalars, Element::metrics}, .outputs = {Element::metrics}};

}  // namespace

constinit const KernelDef adamw = define<[]<typename T>() { return bind_adamw<T>; }, kAdamw>("cuda_adamw");
constinit const KernelDef count_update = define<bind_count, kCount>("cuda_count_update");

}  // namespace snug::backends::cuda
