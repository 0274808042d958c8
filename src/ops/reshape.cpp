#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// reshape(x) {shape} -> the same elements with another shape: a view. The input must lie in logical order; otherwise relayout it.
//
// relayout(x) {channels_last: 0|1} -> the same value in another layout

namespace snug::ops {

namespace {

std::vector<Type> infer_reshape(const OpCall& call) {
  require_inputs(call, 1);
  const Type& x = call.inputs[0];
  Type y{.dtype = x.dtype, .shape = Shape(std::span<const std::int64_t>(call.attributes.integers("shape")))};
  if (y.elements() != x.elements()) {
    throw_user_error("{} has {} elements and cannot become {}", to_string(x.shape), x.elements(), to_string(y.shape));
  }
  if (!lies_in_logical_order(x)) throw_user_error("{} does not lie in logical order; relayout it first", to_string(x));
  return {y};
}

void build_reshape_gradient(GradientContext& context) {
  const auto dims = context.input_type(0).shape.dims();
  context.set_gradient(
      0, context.emit(reshape, {context.output_gradient(0)}, {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())}}));
}

std::vector<Type> infer_relayout(const OpCall& call) {
  require_inputs(call, 1);
  Type y = call.inputs[0];
  if (y.shape.rank() < 3)
    throw_user_error("the input is {}; only values of 3 and more dimensions have two layouts", to_string(y.shape));
  y.layout = call.attributes.integer("channels_last") != 0 ? Layout::channels_last() : Layout::row_major();
  return {y};
}

void build_relayout_gradient(GradientContext& context) {
  const bool back_to_channels_last = context.input_type(0).layout.kind == Layout::Kind::channels_last;
  context.set_gradient(
      0, context.emit(relayout, {context.output_gradient(0)}, {{"channels_last", std::int64_t{back_to_channels_last ? 1 : 0}}}));
}

constexpr std::array<GradientRecipe, 1> kReshapeRecipes{{{.name = "nothing", .build = build_reshape_gradient}}};
constexpr std::array<GradientRecipe, 1> kRelayoutRecipes{{{.name = "nothing", .build = build_relayout_gradient}}};

}  // namespace

constinit const OpDef reshape{
    .name = "reshape", .infer = infer_reshape, .gradients = kReshapeRecipes, .is_view = true, .cheap_to_recompute = true};

constinit const OpDef relayout{
    .name = "relayout", .infer = infer_relayout, .gradients = kRelayoutRecipes, .cheap_to_recompute = true};

}  // namespace snug::ops
