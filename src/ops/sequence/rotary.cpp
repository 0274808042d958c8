#include <utility>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// rotary(x [R,W]) {heads, head_size, base, rows_per_example: T, inverse: 0|1} -> x with its first heads * head_size columns
// rotated by their position: within a head the pair (x1, x2) of columns (i, i + head_size / 2) becomes (x1 cos - x2 sin,
// x2 cos + x1 sin) of the angle (r % T) * base^(-2 i / head_size), as in Hugging Face's Llama. The other columns stay. `inverse`
// rotates back, which is the gradient.

namespace snug::ops {

namespace {

void require_heads(const Type& x, const Attributes& attributes) {
  const std::int64_t heads = attributes.integer("heads"), size = attributes.integer("head_size");
  if (heads < 1) throw_user_error("{} heads are not possible; use at least 1", heads);
  if (size < 2 || size % 2 != 0) throw_user_error("a head of {} columns has no pairs; use an even number", size);
  if (heads > x.shape[1] / size)
    throw_user_error("{} heads of {} columns are more than the {} columns of {}", heads, size, x.shape[1], to_string(x.shape));
  const double base = attributes.real("base");
  if (!(base > 0)) throw_user_error("the base {} is not positive", base);
  const std::int64_t inverse = attributes.integer("inverse");
  if (inverse != 0 && inverse != 1) throw_user_error("inverse is {}; it must be 0 or 1", inverse);
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  const Type& x = call.inputs[0];
  require_rank(x, 2, "the input");
  require_example_rows(x, call.attributes);
  require_heads(x, call.attributes);
  return {x};
}

// rotary_at(x [R,W], positions i32[R]) {heads, head_size, base, inverse} -> the same, with these positions
std::vector<Type> infer_at(const OpCall& call) {
  require_inputs(call, 2);
  const Type& x = call.inputs[0];
  require_rank(x, 2, "the input");
  require_positions_of_rows(call.inputs[1], x);
  require_heads(x, call.attributes);
  return {x};
}

void build_gradient(GradientContext& context) {
  Attributes attributes = context.attributes();
  attributes.set("inverse", 1 - attributes.integer("inverse"));
  context.set_gradient(0, context.emit(rotary, {context.output_gradient(0)}, std::move(attributes)));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

constexpr std::array<std::string_view, 4> kStepAttributes{"heads", "head_size", "base", "inverse"};
constexpr InSteps kInSteps{.op = &rotary_at, .inputs = 1, .attributes = kStepAttributes};

}  // namespace

// A pair is read before either of it is written.
constinit const OpDef rotary{.name = "rotary",
                             .infer = infer,
                             .flops = flops_per_output_element<3>,
                             .gradients = kRecipes,
                             .in_place = kFirstInPlace,
                             .cheap_to_recompute = true,
                             .in_steps = kInSteps};

constinit const OpDef rotary_at{
    .name = "rotary_at", .infer = infer_at, .flops = flops_per_output_element<3>, .in_place = kFirstInPlace};

}  // namespace snug::ops
