#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// group_norm(x [N,C,H,W], weight [C], bias [C]) {groups, epsilon} -> y, and per example and group mean, variance [N,groups]

namespace snug::ops {

namespace {

Shape rows(const Type& x, const Attributes& attributes) {
  require_rank(x, 4, "the input");
  const std::int64_t groups = attributes.integer("groups");
  if (groups < 1 || x.shape[1] % groups != 0) throw_user_error("{} channels do not split into {} groups", x.shape[1], groups);
  return {x.shape[0], groups};
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_epsilon(call);
  const Type& x = call.inputs[0];
  const Type row{.dtype = statistics_dtype(x.dtype), .shape = rows(x, call.attributes)};
  require_shape(call.inputs[1], {x.shape[1]}, "the weight");
  require_shape(call.inputs[2], {x.shape[1]}, "the bias");
  return {x, row, row};
}

// (dy, x, mean, variance, ...): the first operands of both gradient ops.
void require_gradient_operands(const OpCall& call) {
  require_epsilon(call);
  require_same_shape(call.inputs[0], call.inputs[1], "the output gradient and the input");
  const Shape expected = rows(call.inputs[1], call.attributes);
  require_shape(call.inputs[2], expected, "the mean");
  require_shape(call.inputs[3], expected, "the variance");
}

// group_norm_grad_input(dy, x, mean, variance, weight) -> dx
std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, 5);
  require_gradient_operands(call);
  require_shape(call.inputs[4], {call.inputs[1].shape[1]}, "the weight");
  return {call.inputs[0]};
}

// group_norm_grad_parameters(dy, x, mean, variance) -> gradients of weight and bias [C]
std::vector<Type> infer_grad_parameters(const OpCall& call) {
  require_inputs(call, 4);
  require_gradient_operands(call);
  const Type row{.dtype = call.inputs[2].dtype, .shape = {call.inputs[1].shape[1]}};
  return {row, row};
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  if (context.wants(1) || context.wants(2)) {
    const auto sums = context.emit_all(group_norm_grad_parameters, {dy, context.input(0), context.output(1), context.output(2)},
                                       context.attributes());
    context.set_gradient(1, sums[0]);
    context.set_gradient(2, sums[1]);
  }
  if (context.wants(0)) {
    context.set_gradient(
        0, context.emit(group_norm_grad_input, {dy, context.input(0), context.output(1), context.output(2), context.input(1)},
                        context.attributes()));
  }
}

constexpr std::array<GradientRecipe, 1> kRecipes{
    {{.name = "input", .keeps_inputs = 0b011, .keeps_outputs = 0b110, .build = build_gradient}}};
constexpr std::array<std::string_view, 3> kOutputs{"y", "mean", "variance"};
constexpr std::array<std::string_view, 2> kParameterOutputs{"weight", "bias"};

}  // namespace

constinit const OpDef group_norm{.name = "group_norm",
                                 .infer = infer,
                                 .flops = flops_per_input_element<7>,
                                 .gradients = kRecipes,
                                 .in_place = kFirstInPlace,
                                 .outputs = kOutputs,
                                 .cheap_to_recompute = true,
                                 .normalizes = true,
                                 .wide_inputs = 0b110};

constinit const OpDef group_norm_grad_input{.name = "group_norm_grad_input",
                                            .infer = infer_grad_input,
                                            .flops = flops_per_output_element<11>,
                                            .in_place = kBothInPlace,
                                            .may_accumulate = true};

constinit const OpDef group_norm_grad_parameters{.name = "group_norm_grad_parameters",
                                                 .infer = infer_grad_parameters,
                                                 .flops = flops_per_input_element<5>,
                                                 .outputs = kParameterOutputs};

}  // namespace snug::ops
