#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// embedding(indices i32[R], table [V,D]) -> the rows of the table that the indices name [R,D]
// An index outside [0, V) gives zeros: the indices of padding are not checked, and may be any.

namespace snug::ops {

namespace {

void require_indices(const Type& indices) {
  require_rank(indices, 1, "the indices");
  if (indices.dtype != DType::i32) throw_user_error("the indices are {}; they must be i32", name_of(indices.dtype));
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_indices(call.inputs[0]);
  const Type& table = call.inputs[1];
  require_rank(table, 2, "the table");
  return {{.dtype = table.dtype, .shape = {call.inputs[0].shape[0], table.shape[1]}}};
}

// embedding_grad(indices, dy [R,D]) {rows: V} -> gradient of the table [V,D]; indices outside [0, V) add nothing
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 2);
  require_indices(call.inputs[0]);
  const Type& dy = call.inputs[1];
  require_rank(dy, 2, "the output gradient");
  require_shape(dy, {call.inputs[0].shape[0], dy.shape[1]}, "the output gradient");
  return {{.dtype = dy.dtype, .shape = {call.attributes.integer("rows"), dy.shape[1]}}};
}

std::int64_t flops_grad(const NodeTypes& types, const Attributes& /*attributes*/) { return types.inputs[1].elements(); }

void build_gradient(GradientContext& context) {
  const Attributes attributes{{"rows", context.input_type(1).shape[0]}};
  context.set_gradient(1, context.emit(embedding_grad, {context.input(0), context.output_gradient(0)}, attributes));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "indices", .keeps_inputs = 0b01, .build = build_gradient}}};

}  // namespace

constinit const OpDef embedding{
    .name = "embedding", .infer = infer, .gradients = kRecipes, .cheap_to_recompute = true, .looks_up_in = 1};

constinit const OpDef embedding_grad{.name = "embedding_grad", .infer = infer_grad, .flops = flops_grad, .may_accumulate = true};

}  // namespace snug::ops
