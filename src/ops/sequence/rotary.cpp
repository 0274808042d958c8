#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/sequence/rotary_angles.h"

// rotary(x [R,W]) {heads, head_size, base, rows_per_example: T, inverse: 0|1} -> x with its first heads * head_size columns
// rotated by their position: within a head the pair (x1, x2) of columns (i, i + head_size / 2) becomes (x1 cos - x2 sin,
// x2 cos + x1 sin) of the angle (r % T) * base^(-2 i / head_size), as in Hugging Face's Llama; rotary_angles.h says how the angle
// is rounded. The other columns stay. `inverse` rotates back, which is the gradient.

namespace snug::ops {

namespace {

void require_heads(const Type& x, const Attributes& attributes) {
  const std::int64_t heads = attributes.integer("heads"), size = attributes.integer("head_size");
  if (heads < 1) throw_user_error("{} heads are not possible; use at least 1", heads);
  if (size < 2 || size % 2 != 0) throw_user_error("a head of {} columns has no pairs; use an even number", size);
  if (heads > x.shape[1] / size)
    throw_user_error("{} heads of {} columns are more than the {} columns of {}", heads, size, x.shape[1], to_string(x.shape));
  const double base = attributes.real("base");
  if (!(base >= 1 && base <= std::numeric_limits<float>::max()))
    throw_user_error("the base {} is not between 1 and 3.4e38", base);
  flag(attributes, "inverse");
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

float rotary_frequency(double base, std::int64_t head_size, std::int64_t pair) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(head_size);
  return 1 / static_cast<float>(std::pow(double{static_cast<float>(base)}, double{exponent}));
}

std::vector<float> rotary_frequencies(const Attributes& attributes) {
  const double base = attributes.real("base");
  const std::int64_t size = attributes.integer("head_size");
  const float direction = attributes.integer("inverse") != 0 ? -1 : 1;
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < size / 2; ++i) frequencies.push_back(direction * rotary_frequency(base, size, i));
  return frequencies;
}

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
