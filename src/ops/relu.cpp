#include "ops/common.h"
#include "ops/ops.h"

// relu(x) -> max(x, 0). Backward needs only where the output is positive: it keeps the output itself, often the next op's kept
// input anyway, or one bit per element.

namespace snug::ops {

namespace {

void grad_from_output(GradientContext& context) {
  context.set_gradient(0, context.emit(relu_grad, {context.output_gradient(0), context.output(0)}));
}

ValueId make_sign_bits(SectionBuilder& builder, const Node& forward) {
  return builder.emit(sign_bits, {forward.outputs[0]}, {}, {.name = forward.layer + ".sign", .layer = forward.layer}).front();
}

void grad_from_bits(GradientContext& context) {
  context.set_gradient(0, context.emit(relu_grad_bits, {context.output_gradient(0), context.extra()}));
}

// sign_bits(y) -> one bit per element, set where y > 0, in y's memory order
std::vector<Type> infer_sign_bits(const OpCall& call) {
  Type bits = infer_same_as_first(call)[0];
  bits.dtype = DType::bit;
  return {bits};
}

// relu_grad_bits(dy, bits) -> dx
std::vector<Type> infer_grad_bits(const OpCall& call) {
  require_inputs(call, 2);
  require_shape(call.inputs[1], call.inputs[0].shape, "the sign bits");
  return {call.inputs[0]};
}

constexpr std::array<GradientRecipe, 2> kRecipes{{{.name = "output", .keeps_outputs = 0b1, .build = grad_from_output},
                                                  {.name = "bits", .make_extra = make_sign_bits, .build = grad_from_bits}}};

}  // namespace

constinit const OpDef relu{.name = "relu",
                           .infer = infer_same_as_first,
                           .flops = flops_per_output_element<1>,
                           .gradients = kRecipes,
                           .in_place = kFirstInPlace,
                           .cheap_to_recompute = true,
                           .pointwise = true};

constinit const OpDef relu_grad{.name = "relu_grad",
                                .infer = infer_same_as_both,
                                .flops = flops_per_output_element<1>,
                                .in_place = kBothInPlace,
                                .exact_inputs = 0b10,
                                .may_accumulate = true,
                                .signs_only = {.input = 1, .with_bits = &relu_grad_bits}};

constinit const OpDef relu_grad_bits{.name = "relu_grad_bits",
                                     .infer = infer_grad_bits,
                                     .flops = flops_per_output_element<1>,
                                     .in_place = kFirstInPlace,
                                     .may_accumulate = true};

constinit const OpDef sign_bits{
    .name = "sign_bits", .infer = infer_sign_bits, .cheap_to_recompute = true, .pointwise = true, .is_auxiliary = true};

}  // namespace snug::ops
