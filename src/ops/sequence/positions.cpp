#include "base/error.h"
#include "ir/example_rows.h"
#include "ops/common.h"
#include "ops/ops.h"

// add_positions(x [R,D], table [C,D]) {rows_per_example: T} -> x plus, in each row, the row of the table for its position in its
// example: row r is at position r % T. T <= C.

namespace snug::ops {

namespace {

// Positions of an example, of which the table has `most`.
void require_positions(const Type& x, const Attributes& attributes, std::int64_t most) {
  require_rank(x, 2, "the value");
  require_example_rows(x, attributes);
  const std::int64_t positions = rows_per_example(attributes);
  if (positions > most) throw_user_error("an example has {} positions, but the table has {}", positions, most);
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2);
  const Type& x = call.inputs[0];
  const Type& table = call.inputs[1];
  require_rank(table, 2, "the table");
  require_positions(x, call.attributes, table.shape[0]);
  require_shape(table, {table.shape[0], x.shape[1]}, "the table");
  return {x};
}

// add_positions_grad(dy [R,D]) {rows_per_example: T, positions: C} -> gradient of the table [C,D]: the sum over the examples,
// zero for the positions that none has
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 1);
  const Type& dy = call.inputs[0];
  const std::int64_t positions = call.attributes.integer("positions");
  require_positions(dy, call.attributes, positions);
  return {{.dtype = dy.dtype, .shape = {positions, dy.shape[1]}}};
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  if (context.wants(1)) {
    Attributes attributes = context.attributes();
    attributes.set("positions", context.input_type(1).shape[0]);
    context.set_gradient(1, context.emit(add_positions_grad, {dy}, attributes));
  }
  if (context.wants(0)) context.set_gradient(0, dy);
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

// add_positions_at(x [R,D], table [C,D], positions i32[R]) -> x plus, in each row, the row of the table for its position; nothing
// is added where the table has no such row
std::vector<Type> infer_at(const OpCall& call) {
  require_inputs(call, 3);
  const Type& x = call.inputs[0];
  const Type& table = call.inputs[1];
  require_rank(x, 2, "the value");
  require_rank(table, 2, "the table");
  require_shape(table, {table.shape[0], x.shape[1]}, "the table");
  require_positions_of_rows(call.inputs[2], x);
  return {x};
}

constexpr InSteps kInSteps{.op = &add_positions_at, .inputs = 2};

}  // namespace

constinit const OpDef add_positions{.name = "add_positions",
                                    .infer = infer,
                                    .flops = flops_per_output_element<1>,
                                    .gradients = kRecipes,
                                    .in_place = kFirstInPlace,
                                    .cheap_to_recompute = true,
                                    .pointwise = true,
                                    .in_steps = kInSteps};

constinit const OpDef add_positions_grad{
    .name = "add_positions_grad", .infer = infer_grad, .flops = flops_per_input_element<1>, .may_accumulate = true};

constinit const OpDef add_positions_at{
    .name = "add_positions_at", .infer = infer_at, .flops = flops_per_output_element<1>, .in_place = kFirstInPlace};

}  // namespace snug::ops
