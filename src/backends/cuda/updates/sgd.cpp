#include "backends/cuda/updates/sgd.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ops/updates/sgd.h"

namespace snug::backends::cuda {

namespace {

template <typename T>
std::unique_ptr<BoundKernel> bind_sgd(const Call& call) {
  const Attributes& attributes = call.attributes();
  const bool has_momentum = ops::sgd_has_momentum(attributes);
  const bool clips = ops::sgd_clips(attributes, call.input_count());
  const launch::SgdOperands<T> operands{.weight = call.in<T>(0),
                                        .gradient = call.in<T>(1),
                                        .momentum = has_momentum ? call.in<T>(3) : nullptr,
                                        .new_weight = call.out<T>(0),
                                        .cleared_gradient = call.out<T>(1),
                                        .new_momentum = has_momentum ? call.out<T>(2) : nullptr,
                                        .scalars = call.scalars(2),
                                        .norm = clips ? call.in<GradientNorm>(call.input_count() - 1) : nullptr};
  const launch::SgdConstants constants{.momentum = static_cast<float>(attributes.real("momentum")),
                                       .weight_decay = static_cast<float>(attributes.real("weight_decay")),
                                       .nesterov = attributes.integer("nesterov") != 0,
                                       .stochastic = ops::sgd_rounds_stochastically(attributes),
                                       .key = static_cast<std::uint64_t>(attributes.integer_or("key", 0))};
  return call.launch([operands, constants, count = call.elements()](cudaStream_t stream) {
    launch::sgd<T>(stream, operands, constants, count);
  });
}

// Momentum and norm are told apart by their dtypes: a node goes with one of the three.
constexpr Signature kPlain{.inputs = {Element::real, Element::real, Element::scalars, Element::real}};
constexpr Signature kClipped{.inputs = {Element::real, Element::real, Element::scalars, Element::metrics}};
constexpr Signature kClippedWithMomentum{
    .inputs = {Element::real, Element::real, Element::scalars, Element::real, Element::metrics}};

}  // namespace

constinit const KernelDef sgd = define<[]<typename T>() { return bind_sgd<T>; }, kPlain>("cuda_sgd");
constinit const KernelDef clipped_sgd = define<[]<typename T>() { return bind_sgd<T>; }, kClipped>("cuda_clipped_sgd", "sgd");
constinit const KernelDef clipped_sgd_with_momentum =
    define<[]<typename T>() { return bind_sgd<T>; }, kClippedWithMomentum>("cuda_clipped_sgd_with_momentum", "sgd");

}  // namespace snug::backends::cuda
