#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// linear(x [N,I], weight [O,I], bias [O]?) -> x weight^T + bias [N,O]

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2, 3);
  const Type& x = call.inputs[0];
  const Type& weight = call.inputs[1];
  require_rank(x, 2, "the input");
  require_rank(weight, 2, "the weight");
  if (x.shape[1] != weight.shape[1]) {
    throw_user_error("the input {} has {} features but the weight {} takes {}", to_string(x.shape), x.shape[1],
                     to_string(weight.shape), weight.shape[1]);
  }
  if (call.inputs.size() == 3) require_shape(call.inputs[2], {weight.shape[0]}, "the bias");
  return {{.dtype = x.dtype, .shape = {x.shape[0], weight.shape[0]}}};
}

// All three products take N * I * O multiply-adds; the shapes of the first two operands have these three numbers.
std::int64_t flops(const NodeTypes& types, const Attributes& /*attributes*/) {
  return 2 * count_operations(types.inputs[0].elements(), types.inputs[1].shape[0]);  // (N I) O
}

std::int64_t flops_grad_weight(const NodeTypes& types, const Attributes& /*attributes*/) {
  return 2 * count_operations(types.inputs[0].elements(), types.inputs[1].shape[1]);  // (N O) I
}

// linear_grad_input(dy [N,O], weight [O,I]) -> dx [N,I]
std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, 2);
  const Type& dy = call.inputs[0];
  const Type& weight = call.inputs[1];
  require_rank(dy, 2, "the output gradient");
  require_rank(weight, 2, "the weight");
  require_shape(dy, {dy.shape[0], weight.shape[0]}, "the output gradient");
  return {{.dtype = dy.dtype, .shape = {dy.shape[0], weight.shape[1]}}};
}

std::int64_t flops_grad_input(const NodeTypes& types, const Attributes& /*attributes*/) {
  return 2 * count_operations(types.inputs[0].elements(), types.inputs[1].shape[1]);  // (N O) I
}

// linear_grad_weight(dy [N,O], x [N,I]) -> dweight [O,I]
std::vector<Type> infer_grad_weight(const OpCall& call) {
  require_inputs(call, 2);
  const Type& dy = call.inputs[0];
  const Type& x = call.inputs[1];
  require_rank(dy, 2, "the output gradient");
  require_rank(x, 2, "the input");
  require_shape(dy, {x.shape[0], dy.shape[1]}, "the output gradient");
  return {{.dtype = x.dtype, .shape = {dy.shape[1], x.shape[1]}}};
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  if (context.wants(1)) context.set_gradient(1, context.emit(linear_grad_weight, {dy, context.input(0)}));
  if (context.input_count() == 3 && context.wants(2)) context.set_gradient(2, context.emit(sum_to_channels, {dy}));
  if (context.wants(0)) context.set_gradient(0, context.emit(linear_grad_input, {dy, context.input(1)}));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b011, .build = build_gradient}}};

}  // namespace

constinit const OpDef linear{.name = "linear", .infer = infer, .flops = flops, .gradients = kRecipes};

constinit const OpDef linear_grad_input{
    .name = "linear_grad_input", .infer = infer_grad_input, .flops = flops_grad_input, .may_accumulate = true};

constinit const OpDef linear_grad_weight{
    .name = "linear_grad_weight", .infer = infer_grad_weight, .flops = flops_grad_weight, .may_accumulate = true};

}  // namespace snug::ops
