#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// softmax(x [...,D]) -> exp(x) / sum of exp(x) over the last dimension. Its rows must lie together: relayout other values first.

namespace snug::ops {

namespace {

void require_rows(const Type& x) {
  if (x.shape.rank() == 0) throw UserError("the input is a single number; it must have at least 1 dimension");
  if (!lies_in_logical_order(x)) throw_user_error("{} does not lie in logical order; relayout it first", to_string(x));
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_rows(call.inputs[0]);
  return {call.inputs[0]};
}

// softmax_grad(dy, y) -> dx
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 2);
  require_same_shape(call.inputs[0], call.inputs[1], "the output gradient and the output");
  require_rows(call.inputs[0]);
  require_rows(call.inputs[1]);
  return {call.inputs[1]};
}

void build_gradient(GradientContext& context) {
  context.set_gradient(0, context.emit(softmax_grad, {context.output_gradient(0), context.output(0)}));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "output", .keeps_outputs = 0b1, .build = build_gradient}}};

}  // namespace

constinit const OpDef softmax{.name = "softmax",
                              .infer = infer,
                              .flops = flops_per_output_element<5>,
                              .gradients = kRecipes,
                              .in_place = kFirstInPlace,
                              .cheap_to_recompute = true};

constinit const OpDef softmax_grad{
    .name = "softmax_grad", .infer = infer_grad, .flops = flops_per_output_element<4>, .in_place = kBothInPlace};

}  // namespace snug::ops
