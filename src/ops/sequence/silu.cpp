#include "ops/common.h"
#include "ops/ops.h"

// silu(x) -> x * sigmoid(x). Not monotonic, so backward needs the input.

namespace snug::ops {

namespace {

// An exponential counts as one operation.
constexpr std::int64_t kFlops = 4, kGradFlops = 8;

// silu_grad(dy, x) -> dx
void grad_from_input(GradientContext& context) {
  context.set_gradient(0, context.emit(silu_grad, {context.output_gradient(0), context.input(0)}));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b1, .build = grad_from_input}}};

}  // namespace

constinit const OpDef silu{.name = "silu",
                           .infer = infer_same_as_first,
                           .flops = flops_per_output_element<kFlops>,
                           .gradients = kRecipes,
                           .in_place = kFirstInPlace,
                           .cheap_to_recompute = true,
                           .pointwise = true};

constinit const OpDef silu_grad{.name = "silu_grad",
                                .infer = infer_same_as_both,
                                .flops = flops_per_output_element<kGradFlops>,
                                .in_place = kBothInPlace,
                                .may_accumulate = true};

}  // namespace snug::ops
