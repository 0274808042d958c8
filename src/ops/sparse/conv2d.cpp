#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/sparse/sparse.h"

// Convolution with a weight of the sparse store (ops/sparse/sparse.h). Constants: those of conv2d, and first_row, weight_shape,
// bits.
//   sparse_conv2d(x [N,C,H,W], values, columns, rows, bias [O]?)                             -> [N,O,OH,OW]
//   sparse_conv2d_grad_input(dy, values, columns, rows) {..., input_shape, channels_last?}   -> dx
//   sparse_conv2d_grad_weight(dy, x, columns, rows) {..., nonzeros}                          -> gradient of the whole store
// The last is 0 except for this tensor's values. With the store's accumulator as an additional input, as programs have it, it
// adds to its own tensor's part alone.
// FLOPs are those of the dense convolution, which the fast kernels really do.

namespace snug::ops {

namespace {

Conv2dGeometry geometry_of(const Shape& input, const Attributes& attributes) {
  if (attributes.integer("groups") != 1) throw_user_error("a sparse convolution has no groups");
  return Conv2dGeometry::from(input, SparseSlot::from(attributes).shape, attributes);
}

void require_pattern(const Type& columns, const Type& rows, std::int64_t nonzeros, const Attributes& attributes) {
  const SparseSlot slot = SparseSlot::from(attributes);
  if (nonzeros > std::int64_t{1} << 30U) throw_user_error("{} nonzeros are too many", nonzeros);
  if (columns != sparse_columns_type(nonzeros, slot.bits)) {
    throw_user_error("the columns are {}; {} values need {}", to_string(columns), nonzeros,
                     to_string(sparse_columns_type(nonzeros, slot.bits)));
  }
  if (rows.dtype != DType::i32 || rows.shape.rank() != 1 || rows.elements() < slot.first_row + slot.rows() + 1)
    throw_user_error("the rows are {}; they must be i32 and reach up to row {}", to_string(rows), slot.first_row + slot.rows());
}

std::int64_t nonzeros_of(const Type& values) {
  require_rank(values, 1, "the list of values");
  return values.elements();
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 4, 5);
  const Type& x = call.inputs[0];
  const auto g = geometry_of(x.shape, call.attributes);
  require_pattern(call.inputs[2], call.inputs[3], nonzeros_of(call.inputs[1]), call.attributes);
  if (call.inputs.size() == 5) require_shape(call.inputs[4], {g.out_channels}, "the bias");
  return {{.dtype = x.dtype, .shape = {g.batch, g.out_channels, g.out_height, g.out_width}, .layout = x.layout}};
}

std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return 2 * geometry_of(types.inputs[0].shape, attributes).multiply_adds();
}

std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, 4);
  const Type& dy = call.inputs[0];
  const Type dx = type_from_input_shape(dy, call.attributes, dy.layout);
  const auto g = geometry_of(dx.shape, call.attributes);
  require_shape(dy, {g.batch, g.out_channels, g.out_height, g.out_width}, "the output gradient");
  require_pattern(call.inputs[2], call.inputs[3], nonzeros_of(call.inputs[1]), call.attributes);
  return {dx};
}

std::int64_t flops_grad_input(const NodeTypes& types, const Attributes& attributes) {
  return 2 * geometry_of(types.outputs[0].shape, attributes).multiply_adds();
}

std::vector<Type> infer_grad_weight(const OpCall& call) {
  require_inputs(call, 4);
  const Type& dy = call.inputs[0];
  const Type& x = call.inputs[1];
  const auto g = geometry_of(x.shape, call.attributes);
  require_shape(dy, {g.batch, g.out_channels, g.out_height, g.out_width}, "the output gradient");
  const std::int64_t nonzeros = call.attributes.integer("nonzeros");
  if (nonzeros < 1 || nonzeros > std::int64_t{1} << 30U) throw_user_error("{} nonzeros are not possible", nonzeros);
  require_pattern(call.inputs[2], call.inputs[3], nonzeros, call.attributes);
  return {{.dtype = x.dtype, .shape = {nonzeros}}};
}

std::int64_t flops_grad_weight(const NodeTypes& types, const Attributes& attributes) {
  return 2 * geometry_of(types.inputs[1].shape, attributes).multiply_adds();
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  const ValueId columns = context.input(2);
  const ValueId rows = context.input(3);
  // Weight first: the kept input dies there, so the data gradient can take its place.
  if (context.wants(1)) {
    Attributes attributes = context.attributes();
    attributes.set("nonzeros", context.input_type(1).elements());
    context.set_gradient(1, context.emit(sparse_conv2d_grad_weight, {dy, context.input(0), columns, rows}, attributes));
  }
  if (context.input_count() == 5 && context.wants(4)) context.set_gradient(4, context.emit(sum_to_channels, {dy}));
  if (context.wants(0)) {
    const Attributes attributes =
        with_input_shape(context.attributes(), context.input_type(0), context.builder().value(dy).type.layout);
    context.set_gradient(0, context.emit(sparse_conv2d_grad_input, {dy, context.input(1), columns, rows}, attributes));
  }
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b00001, .build = build_gradient}}};

}  // namespace

constinit const OpDef sparse_conv2d{.name = "sparse_conv2d", .infer = infer, .flops = flops, .gradients = kRecipes};

constinit const OpDef sparse_conv2d_grad_input{
    .name = "sparse_conv2d_grad_input", .infer = infer_grad_input, .flops = flops_grad_input};

constinit const OpDef sparse_conv2d_grad_weight{
    .name = "sparse_conv2d_grad_weight", .infer = infer_grad_weight, .flops = flops_grad_weight, .may_accumulate = true};

}  // namespace snug::ops
