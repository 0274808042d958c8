#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// batched_product(a [B,M,K], b [B,K,N]) {transpose_a, transpose_b: 0|1} -> a b [B,M,N], a product of matrices for each of B
// A transposed factor lies the other way around: a [B,K,M], b [B,N,K].

namespace snug::ops {

namespace {

void require_factor(const Type& factor, std::string_view what) {
  require_rank(factor, 3, what);
  if (!lies_in_logical_order(factor)) throw_user_error("{} {} does not lie in logical order", what, to_string(factor));
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2);
  const Type& a = call.inputs[0];
  const Type& b = call.inputs[1];
  require_factor(a, "the first factor");
  require_factor(b, "the second factor");
  const bool transpose_a = flag(call.attributes, "transpose_a"), transpose_b = flag(call.attributes, "transpose_b");
  const std::int64_t rows = a.shape[transpose_a ? 2 : 1], depth = a.shape[transpose_a ? 1 : 2];
  const std::int64_t columns = b.shape[transpose_b ? 1 : 2];
  require_shape(b, transpose_b ? Shape{a.shape[0], columns, depth} : Shape{a.shape[0], depth, columns}, "the second factor");
  return {{.dtype = a.dtype, .shape = {a.shape[0], rows, columns}}};
}

std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  const Shape& a = types.inputs[0].shape;
  return 2 * count_operations(types.outputs[0].elements(), a[flag(attributes, "transpose_a") ? 1 : 2]);
}

ValueId product(GradientContext& context, ValueId a, bool transpose_a, ValueId b, bool transpose_b) {
  return context.emit(batched_product, {a, b},
                      {{"transpose_a", std::int64_t{transpose_a ? 1 : 0}}, {"transpose_b", std::int64_t{transpose_b ? 1 : 0}}});
}

// Of y = a b: da = dy b^T and db = a^T dy, each transposed where its factor is.
void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  const bool transpose_a = flag(context.attributes(), "transpose_a"), transpose_b = flag(context.attributes(), "transpose_b");
  if (context.wants(0)) {
    const ValueId b = context.input(1);
    context.set_gradient(0,
                         transpose_a ? product(context, b, transpose_b, dy, true) : product(context, dy, false, b, !transpose_b));
  }
  if (context.wants(1)) {
    const ValueId a = context.input(0);
    context.set_gradient(1,
                         transpose_b ? product(context, dy, true, a, transpose_a) : product(context, a, !transpose_a, dy, false));
  }
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "factors", .keeps_inputs = 0b11, .build = build_gradient}}};

}  // namespace

constinit const OpDef batched_product{
    .name = "batched_product", .infer = infer, .flops = flops, .gradients = kRecipes, .may_accumulate = true};

}  // namespace snug::ops
