#include "ops/common.h"
#include "ops/ops.h"

// global_avg_pool(x [N,C,H,W]) -> the mean of each channel [N,C]

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  const Type& x = call.inputs[0];
  require_rank(x, 4, "the input");
  return {{.dtype = x.dtype, .shape = {x.shape[0], x.shape[1]}}};
}

// global_avg_pool_grad(dy) {input_shape, channels_last?} -> dx
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 1);
  const Type dx = type_from_input_shape(call.inputs[0], call.attributes, layout_of_images());
  require_rank(dx, 4, "the input");
  require_shape(call.inputs[0], {dx.shape[0], dx.shape[1]}, "the output gradient");
  return {dx};
}

void build_gradient(GradientContext& context) {
  const Attributes attributes = with_input_shape({}, context.input_type(0), layout_of_images());
  context.set_gradient(0, context.emit(global_avg_pool_grad, {context.output_gradient(0)}, attributes));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

}  // namespace

constinit const OpDef global_avg_pool{.name = "global_avg_pool",
                                      .infer = infer,
                                      .flops = flops_per_input_element<1>,
                                      .gradients = kRecipes,
                                      .cheap_to_recompute = true};

constinit const OpDef global_avg_pool_grad{
    .name = "global_avg_pool_grad", .infer = infer_grad, .flops = flops_per_output_element<1>, .may_accumulate = true};

}  // namespace snug::ops
