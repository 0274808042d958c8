#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/pool.h"

// max_pool(x) {kernel, stride, padding: [h,w]} -> the largest of each window, the first of equals. Backward needs which element
// of the window was the largest: recomputed from the input, or kept in 4 bits per output (8 for windows of more than 16).

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

// max_pool_grad(dy, x) -> dx
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 2);
  const auto g = PoolGeometry::from(call.inputs[1].shape, call.attributes);
  require_shape(call.inputs[0], g.output(), "the output gradient");
  return {call.inputs[1]};
}

std::int64_t flops_grad(const NodeTypes& types, const Attributes& attributes) {
  return PoolGeometry::from(types.inputs[1].shape, attributes).operations();
}

// max_pool_argmax(x) -> the index of the largest element in its window, row by row
std::vector<Type> infer_argmax(const OpCall& call) {
  Type index = infer(call)[0];
  const auto g = PoolGeometry::from(call.inputs[0].shape, call.attributes);
  const std::int64_t window = g.kernel_height * g.kernel_width;
  if (window > 256) throw_user_error("a window of {} elements is too large to number in 8 bits", window);
  index.dtype = window <= 16 ? DType::u4 : DType::u8;
  return {index};
}

// max_pool_grad_argmax(dy, argmax) {..., input_shape, channels_last?} -> dx
std::vector<Type> infer_grad_argmax(const OpCall& call) {
  require_inputs(call, 2);
  const Type dx = type_from_input_shape(call.inputs[0], call.attributes, layout_of_images());
  const auto g = PoolGeometry::from(dx.shape, call.attributes);
  require_shape(call.inputs[0], g.output(), "the output gradient");
  require_shape(call.inputs[1], g.output(), "the argmax");
  return {dx};
}

void grad_from_input(GradientContext& context) {
  context.set_gradient(0, context.emit(max_pool_grad, {context.output_gradient(0), context.input(0)}, context.attributes()));
}

ValueId make_argmax(SectionBuilder& builder, const Node& forward) {
  return builder
      .emit(max_pool_argmax, {forward.inputs[0]}, forward.attributes, {.name = forward.layer + ".argmax", .layer = forward.layer})
      .front();
}

void grad_from_argmax(GradientContext& context) {
  const Attributes attributes = with_input_shape(context.attributes(), context.input_type(0), layout_of_images());
  context.set_gradient(0, context.emit(max_pool_grad_argmax, {context.output_gradient(0), context.extra()}, attributes));
}

constexpr std::array<GradientRecipe, 2> kRecipes{{{.name = "input", .keeps_inputs = 0b1, .build = grad_from_input},
                                                  {.name = "argmax", .make_extra = make_argmax, .build = grad_from_argmax}}};

}  // namespace

constinit const OpDef max_pool{
    .name = "max_pool", .infer = infer, .flops = flops, .gradients = kRecipes, .cheap_to_recompute = true};

constinit const OpDef max_pool_grad{
    .name = "max_pool_grad", .infer = infer_grad, .flops = flops_grad, .exact_inputs = 0b10, .may_accumulate = true};

constinit const OpDef max_pool_argmax{
    .name = "max_pool_argmax", .infer = infer_argmax, .flops = flops, .cheap_to_recompute = true};

constinit const OpDef max_pool_grad_argmax{
    .name = "max_pool_grad_argmax", .infer = infer_grad_argmax, .flops = flops_per_input_element<1>, .may_accumulate = true};

}  // namespace snug::ops
