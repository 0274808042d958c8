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

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  const Type& x = call.inputs[0];
  const Attributes& attributes = call.attributes;
  require_rank(x, 2, "the input");
  require_example_rows(x, attributes);
  const std::int64_t heads = attributes.integer("heads"), size = attributes.integer("head_size");
  if (heads < 1) throw_user_error("{} heads are not possible; use at least 1", heads);
  if (size < 2 || size % 2 != 0) throw_user_error("a head of {} columns has no pairs; use an even number", size);
  if (heads > x.shape[1] / size)
    throw_user_error("{} heads of {} columns are more than the {} columns of {}", heads, size, x.shape[1], to_string(x.shape));
  const double base = attributes.real("base");
  if (!(base > 0)) throw_user_error("the base {} is not positive", base);
  const std::int64_t inverse = attributes.integer("inverse");
  if (inverse != 0 && inverse != 1) throw_user_error("inverse is {}; it must be 0 or 1", inverse);
  return {x};
}

void build_gradient(GradientContext& context) {
  Attributes attributes = context.attributes();
  attributes.set("inverse", 1 - attributes.integer("inverse"));
  context.set_gradient(0, context.emit(rotary, {context.output_gradient(0)}, std::move(attributes)));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

}  // namespace

// A pair is read before either of it is written.
constinit const OpDef rotary{.name = "rotary",
                             .infer = infer,
                             .flops = flops_per_output_element<3>,
                             .gradients = kRecipes,
                             .in_place = kFirstInPlace,
                             .cheap_to_recompute = true};

}  // namespace snug::ops
