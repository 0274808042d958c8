#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/random_draws.h"

// dropout(x [N,...], scalars) {probability, key, rows_per_example?} -> x / (1 - probability) where the mask is set, else 0
// The mask is drawn from a counter keyed by (seed, step, key, example, element) and never stored: backward is the same op on the
// gradient. An example's mask does not depend on how its batch is split into microbatches, however many rows it has.

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_scalars(call.inputs[1]);
  const double probability = call.attributes.real("probability");
  if (!(probability >= 0 && probability < 1)) throw_user_error("probability {} is not in [0, 1)", probability);
  const std::int64_t key = call.attributes.integer("key");
  if (key < 0 || key > kMostDropoutKey) throw_user_error("the key {} is not in 0 to {}", key, kMostDropoutKey);
  require_drawn_rows(call.inputs[0], call.attributes);
  return {call.inputs[0]};
}

void build_gradient(GradientContext& context) {
  context.set_gradient(0, context.emit(dropout, {context.output_gradient(0), context.input(1)}, context.attributes()));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

}  // namespace

constinit const OpDef dropout{.name = "dropout",
                              .infer = infer,
                              .flops = flops_per_output_element<1>,
                              .gradients = kRecipes,
                              .in_place = kFirstInPlace,
                              .cheap_to_recompute = true,
                              .pointwise = true};

}  // namespace snug::ops
