#include "ops/sequence/gated_linear_unit.h"

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// gated_linear_unit(x [R,2F]) {activation: 0 sigmoid | 1 silu | 2 gelu by tanh} -> activation(x[:, :F]) * x[:, F:] [R,F]

namespace snug::ops {

GateActivation gate_activation(const Attributes& attributes) {
  const std::int64_t activation = attributes.integer("activation");
  if (activation < 0 || activation > 2)
    throw_user_error("activation is {}; it must be 0 (sigmoid), 1 (silu) or 2 (gelu by tanh)", activation);
  return static_cast<GateActivation>(activation);
}

namespace {

// What a result takes, by activation; a function (exponential, hyperbolic tangent) counts as one operation.
template <std::int64_t Sigmoid, std::int64_t Silu, std::int64_t Gelu>
std::int64_t operations(const Attributes& attributes) {
  switch (gate_activation(attributes)) {
    case GateActivation::sigmoid:
      return Sigmoid;
    case GateActivation::silu:
      return Silu;
    case GateActivation::gelu_by_tanh:
      return Gelu;
  }
  throw InternalError("an activation that gate_activation lets through");
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  gate_activation(call.attributes);
  const Type& x = call.inputs[0];
  require_rank(x, 2, "the input");
  if (x.shape[1] % 2 != 0) throw_user_error("the input {} has no two halves of columns", to_string(x.shape));
  return {{.dtype = x.dtype, .shape = {x.shape[0], x.shape[1] / 2}}};
}

std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return operations<4, 5, 10>(attributes) * types.outputs[0].elements();
}

// gated_linear_unit_grad(dy [R,F], x [R,2F]) {activation} -> dx [R,2F]
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 2);
  const Type& x = call.inputs[1];
  require_shape(call.inputs[0], infer({call.inputs.subspan(1), call.attributes})[0].shape, "the output gradient");
  return {x};
}

std::int64_t flops_grad(const NodeTypes& types, const Attributes& attributes) {
  return operations<8, 11, 19>(attributes) * types.inputs[0].elements();
}

void build_gradient(GradientContext& context) {
  context.set_gradient(
      0, context.emit(gated_linear_unit_grad, {context.output_gradient(0), context.input(0)}, context.attributes()));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b1, .build = build_gradient}}};

// Both halves of a row are read before either is written.
constexpr std::array<InPlacePromise, 1> kGradInPlace{{{0, 1}}};

}  // namespace

constinit const OpDef gated_linear_unit{
    .name = "gated_linear_unit", .infer = infer, .flops = flops, .gradients = kRecipes, .cheap_to_recompute = true};

constinit const OpDef gated_linear_unit_grad{.name = "gated_linear_unit_grad",
                                             .infer = infer_grad,
                                             .flops = flops_grad,
                                             .in_place = kGradInPlace,
                                             .cheap_to_recompute = true};

}  // namespace snug::ops
