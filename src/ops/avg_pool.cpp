#include "ops/common.h"
#include "ops/ops.h"
#include "ops/pool.h"

// avg_pool(x) {kernel, stride, padding: [h,w]} -> the mean of each window, padding counted as zeros (PyTorch's default).

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  Type y = call.inputs[0];
  y.shape = PoolGeometry::from(y.shape, call.attributes).output();
  return {y};
}

std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return PoolGeometry::from(types.inputs[0].shape, attributes).operations();
}

// avg_pool_grad(dy) {..., input_shape, channels_last?} -> dx
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 1);
  const Type dx = type_from_input_shape(call.inputs[0], call.attributes, layout_of_images());
  require_shape(call.inputs[0], PoolGeometry::from(dx.shape, call.attributes).output(), "the output gradient");
  return {dx};
}

std::int64_t flops_grad(const NodeTypes& types, const Attributes& attributes) {
  return PoolGeometry::from(types.outputs[0].shape, attributes).operations();
}

void build_gradient(GradientContext& context) {
  const Attributes attributes = with_input_shape(context.attributes(), context.input_type(0), layout_of_images());
  context.set_gradient(0, context.emit(avg_pool_grad, {context.output_gradient(0)}, attributes));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

}  // namespace

constinit const OpDef avg_pool{
    .name = "avg_pool", .infer = infer, .flops = flops, .gradients = kRecipes, .cheap_to_recompute = true};

constinit const OpDef avg_pool_grad{.name = "avg_pool_grad", .infer = infer_grad, .flops = flops_grad, .may_accumulate = true};

}  // namespace snug::ops
