#include "ops/common.h"
#include "ops/ops.h"

// add(a, b) -> a + b. Backward keeps nothing: the gradient of both operands is the output's.

namespace snug::ops {

namespace {

void build_gradient(GradientContext& context) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (context.wants(i)) context.set_gradient(i, context.output_gradient(0));
  }
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "nothing", .build = build_gradient}}};

}  // namespace

constinit const OpDef add{.name = "add",
                          .infer = infer_same_as_both,
                          .flops = flops_per_output_element<1>,
                          .gradients = kRecipes,
                          .in_place = kBothInPlace,
                          .cheap_to_recompute = true,
                          .is_sum = true,
                          .joins_branches = true};

}  // namespace snug::ops
