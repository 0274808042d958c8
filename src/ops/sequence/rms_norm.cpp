#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// rms_norm(x [R,D], weight [D]) {epsilon} -> y, and per row inverse_rms [R]: y = x * inverse_rms * weight with inverse_rms =
// 1 / sqrt(mean of squares + epsilon), the mean over the D elements of the row.

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_epsilon(call);
  const Type& x = call.inputs[0];
  require_rank(x, 2, "the input");
  require_shape(call.inputs[1], {x.shape[1]}, "the weight");
  return {x, {.dtype = statistics_dtype(x.dtype), .shape = {x.shape[0]}}};
}

// Of a gradient op with the operands dy, x, ..., inverse_rms.
void require_gradient_operands(const OpCall& call) {
  require_same_shape(call.inputs[0], call.inputs[1], "the output gradient and the input");
  require_rank(call.inputs[1], 2, "the input");
  require_shape(call.inputs.back(), {call.inputs[1].shape[0]}, "the inverse root mean square");
}

// rms_norm_grad_input(dy, x, weight, inverse_rms) -> dx
std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, 4);
  require_gradient_operands(call);
  require_shape(call.inputs[2], {call.inputs[1].shape[1]}, "the weight");
  return {call.inputs[0]};
}

// rms_norm_grad_weight(dy, x, inverse_rms) -> gradient of the weight [D]
std::vector<Type> infer_grad_weight(const OpCall& call) {
  require_inputs(call, 3);
  require_gradient_operands(call);
  return {{.dtype = call.inputs[2].dtype, .shape = {call.inputs[1].shape[1]}}};
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  const ValueId x = context.input(0), inverse_rms = context.output(1);
  if (context.wants(1)) context.set_gradient(1, context.emit(rms_norm_grad_weight, {dy, x, inverse_rms}));
  if (context.wants(0)) context.set_gradient(0, context.emit(rms_norm_grad_input, {dy, x, context.input(1), inverse_rms}));
}

constexpr std::array<GradientRecipe, 1> kRecipes{
    {{.name = "input", .keeps_inputs = 0b11, .keeps_outputs = 0b10, .build = build_gradient}}};
constexpr std::array<std::string_view, 2> kOutputs{"y", "inverse_rms"};

}  // namespace

constinit const OpDef rms_norm{.name = "rms_norm",
                               .infer = infer,
                               .flops = flops_per_input_element<4>,
                               .gradients = kRecipes,
                               .in_place = kFirstInPlace,
                               .outputs = kOutputs,
                               .cheap_to_recompute = true,
                               .normalizes = true,
                               .wide_inputs = 0b10};

constinit const OpDef rms_norm_grad_input{.name = "rms_norm_grad_input",
                                          .infer = infer_grad_input,
                                          .flops = flops_per_output_element<8>,
                                          .in_place = kBothInPlace,
                                          .may_accumulate = true};

constinit const OpDef rms_norm_grad_weight{
    .name = "rms_norm_grad_weight", .infer = infer_grad_weight, .flops = flops_per_input_element<3>, .may_accumulate = true};

}  // namespace snug::ops
