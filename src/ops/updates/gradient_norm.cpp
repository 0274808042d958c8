#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// Clipping by the norm of all gradients together, as torch.nn.utils.clip_grad_norm_ does it:
//   sum_of_squares(g, sum f64[1]?) -> sum + the squares of g's elements, in double: f64[1]      one node per gradient, in a chain
//   clip_factor(sum f64[1], scalars) {finds_overflow: 1?} -> gradient_norm f64[2]
//     norm = sqrt(sum) / loss_scale;  factor = min(1, clip_norm / (norm + 1e-6)), NaN where the norm is not finite
//   finite_factor(metrics) -> gradient_norm f64[2]: nothing measured, the factor 1, or NaN where the loss is not finite
//     An sgd node that reads it skips itself; the host need not have seen the loss.
// The norm is finite exactly when every gradient is, so dynamic loss scaling reads it too (finds_overflow=1 says so; clip_norm is
// then infinite unless the program also clips).
// A gradient's elements are summed in any fixed order; padding of a library's layout is zero and adds nothing.

namespace snug::ops {

namespace {

const Type& require_sum(const Type& type) {
  const Type sum{.dtype = DType::f64, .shape = {1}};
  if (type != sum) throw_user_error("the sum of squares is {}; it must be {}", to_string(type), to_string(sum));
  return type;
}

std::vector<Type> infer_sum(const OpCall& call) {
  require_inputs(call, 1, 2);
  if (call.inputs.size() == 2) require_sum(call.inputs[1]);
  return {{.dtype = DType::f64, .shape = {1}}};
}

std::vector<Type> infer_factor(const OpCall& call) {
  require_inputs(call, 2);
  require_sum(call.inputs[0]);
  require_scalars(call.inputs[1]);
  return {gradient_norm_type()};
}

std::vector<Type> infer_finite(const OpCall& call) {
  require_inputs(call, 1);
  if (call.inputs[0] != metrics_type())
    throw_user_error("the metrics are {}; they must be {}", to_string(call.inputs[0]), to_string(metrics_type()));
  return {gradient_norm_type()};
}

constexpr std::array<InPlacePromise, 1> kSumInPlace{{{0, 1}}};

}  // namespace

constinit const OpDef sum_of_squares{.name = "sum_of_squares",
                                     .infer = infer_sum,
                                     .flops = flops_per_input_element<2>,
                                     .in_place = kSumInPlace,
                                     .cheap_to_recompute = true,
                                     .measures_gradients = true};

constinit const OpDef clip_factor{
    .name = "clip_factor", .infer = infer_factor, .cheap_to_recompute = true, .measures_gradients = true};

constinit const OpDef finite_factor{
    .name = "finite_factor", .infer = infer_finite, .cheap_to_recompute = true, .is_auxiliary = true};

}  // namespace snug::ops
