#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// gelu(x) {tanh: 0|1} -> x * P(N(0,1) <= x): by the error function (0), as in BERT, or by the approximation with a hyperbolic
// tangent (1), as in GPT-2. Not monotonic, so backward needs the input.

namespace snug::ops {

namespace {

// A function (error function, exponential, hyperbolic tangent) counts as one operation.
constexpr std::int64_t kFlops = 5, kTanhFlops = 9;
constexpr std::int64_t kGradFlops = 11, kTanhGradFlops = 16;

bool by_tanh(const Attributes& attributes) {
  const std::int64_t tanh = attributes.integer("tanh");
  if (tanh != 0 && tanh != 1) throw_user_error("tanh is {}; it must be 0 (exact) or 1 (approximated)", tanh);
  return tanh == 1;
}

std::vector<Type> infer_gelu(const OpCall& call) {
  by_tanh(call.attributes);
  return infer_same_as_first(call);
}

// gelu_grad(dy, x) {tanh} -> dx
std::vector<Type> infer_gelu_grad(const OpCall& call) {
  by_tanh(call.attributes);
  return infer_same_as_both(call);
}

template <std::int64_t Exact, std::int64_t Tanh>
std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return (by_tanh(attributes) ? Tanh : Exact) * types.outputs[0].elements();
}

void grad_from_input(GradientContext& context) {
  context.set_gradient(0, context.emit(gelu_grad, {context.output_gradient(0), context.input(0)}, context.attributes()));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b1, .build = grad_from_input}}};

}  // namespace

constinit const OpDef gelu{.name = "gelu",
                           .infer = infer_gelu,
                           .flops = flops<kFlops, kTanhFlops>,
                           .gradients = kRecipes,
                           .in_place = kFirstInPlace,
                           .cheap_to_recompute = true,
                           .pointwise = true};

constinit const OpDef gelu_grad{.name = "gelu_grad",
                                .infer = infer_gelu_grad,
                                .flops = flops<kGradFlops, kTanhGradFlops>,
                                .in_place = kBothInPlace,
                                .may_accumulate = true};

}  // namespace snug::ops
