#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// layer_norm(x [R,D], weight [D], bias [D]) {epsilon} -> y, and per row mean and inverse_std [R]: y = (x - mean) * inverse_std *
// weight + bias with inverse_std = 1 / sqrt(variance + epsilon), the variance over the D elements of the row.

namespace snug::ops {

namespace {

Type statistic_of_rows(const Type& x) { return {.dtype = statistics_dtype(x.dtype), .shape = {x.shape[0]}}; }

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_epsilon(call);
  const Type& x = call.inputs[0];
  require_rank(x, 2, "the input");
  require_shape(call.inputs[1], {x.shape[1]}, "the weight");
  require_shape(call.inputs[2], {x.shape[1]}, "the bias");
  return {x, statistic_of_rows(x), statistic_of_rows(x)};
}

// Of a gradient op with the operands dy, x, ... and, from `first` on, the mean and inverse_std.
void require_gradient_operands(const OpCall& call, std::size_t first) {
  require_same_shape(call.inputs[0], call.inputs[1], "the output gradient and the input");
  const Type& x = call.inputs[1];
  require_rank(x, 2, "the input");
  require_shape(call.inputs[first], {x.shape[0]}, "the mean");
  require_shape(call.inputs[first + 1], {x.shape[0]}, "the inverse deviation");
}

// layer_norm_grad_input(dy, x, weight, mean, inverse_std) -> dx
std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, 5);
  require_gradient_operands(call, 3);
  require_shape(call.inputs[2], {call.inputs[1].shape[1]}, "the weight");
  return {call.inputs[0]};
}

// layer_norm_grad_parameters(dy, x, mean, inverse_std) -> gradients of weight and bias [D]
std::vector<Type> infer_grad_parameters(const OpCall& call) {
  require_inputs(call, 4);
  require_gradient_operands(call, 2);
  const Type row{.dtype = call.inputs[2].dtype, .shape = {call.inputs[1].shape[1]}};
  return {row, row};
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  const ValueId mean = context.output(1), inverse_std = context.output(2);
  if (context.wants(1) || context.wants(2)) {
    const auto sums = context.emit_all(layer_norm_grad_parameters, {dy, context.input(0), mean, inverse_std});
    context.set_gradient(1, sums[0]);
    context.set_gradient(2, sums[1]);
  }
  if (context.wants(0)) {
    context.set_gradient(0, context.emit(layer_norm_grad_input, {dy, context.input(0), context.input(1), mean, inverse_std}));
  }
}

constexpr std::array<GradientRecipe, 1> kRecipes{
    {{.name = "input", .keeps_inputs = 0b011, .keeps_outputs = 0b110, .build = build_gradient}}};
constexpr std::array<std::string_view, 3> kOutputs{"y", "mean", "inverse_std"};
constexpr std::array<std::string_view, 2> kParameterOutputs{"weight", "bias"};

}  // namespace

constinit const OpDef layer_norm{.name = "layer_norm",
                                 .infer = infer,
                                 .flops = flops_per_input_element<7>,
                                 .gradients = kRecipes,
                                 .in_place = kFirstInPlace,
                                 .outputs = kOutputs,
                                 .cheap_to_recompute = true,
                                 .normalizes = true,
                                 .wide_inputs = 0b110};

constinit const OpDef layer_norm_grad_input{.name = "layer_norm_grad_input",
                                            .infer = infer_grad_input,
                                            .flops = flops_per_output_element<11>,
                                            .in_place = kBothInPlace,
                                            .may_accumulate = true};

constinit const OpDef layer_norm_grad_parameters{.name = "layer_norm_grad_parameters",
                                                 .infer = infer_grad_parameters,
                                                 .flops = flops_per_input_element<5>,
                                                 .outputs = kParameterOutputs};

}  // namespace snug::ops
