#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// shortcut(x [N,C,H,W]) {stride, channels} -> every stride-th pixel, channels C.. zero: the identity shortcut without parameters

namespace snug::ops {

namespace {

Shape output_shape(const Shape& x, const Attributes& attributes) {
  if (x.rank() != 4) throw_user_error("the input is {}; it must have 4 dimensions (N,C,H,W)", to_string(x));
  const std::int64_t stride = attributes.integer("stride");
  const std::int64_t channels = attributes.integer("channels");
  if (stride < 1 || stride > (1 << 20)) throw_user_error("stride {} is not possible; use at least 1", stride);
  if (channels < x[1]) throw_user_error("{} output channels are fewer than the input's {}", channels, x[1]);
  return {x[0], channels, (x[2] + stride - 1) / stride, (x[3] + stride - 1) / stride};
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  Type y = call.inputs[0];
  y.shape = output_shape(y.shape, call.attributes);
  return {y};
}

// shortcut_grad(dy) {..., input_shape, channels_last?} -> dx
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 1);
  const Type dx = type_from_input_shape(call.inputs[0], call.attributes, layout_of_images());
  require_shape(call.inputs[0], output_shape(dx.shape, call.attributes), "the output gradient");
  return {dx};
}

void build_gradient(GradientContext& context) {
  const Attributes attributes = with_input_shape(context.attributes(), context.input_type(0), layout_of_images());
  context.set_gradient(0, context.emit(shortcut_grad, {context.output_gradient(0)}, attributes));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

}  // namespace

constinit const OpDef shortcut{.name = "shortcut", .infer = infer, .gradients = kRecipes, .cheap_to_recompute = true};

constinit const OpDef shortcut_grad{.name = "shortcut_grad", .infer = infer_grad, .may_accumulate = true};

}  // namespace snug::ops
