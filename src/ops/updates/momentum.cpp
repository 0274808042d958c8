#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/random_draws.h"
#include "ops/updates/sgd.h"

// Heavy-ball momentum to which gradients are added directly, so that they need no accumulator (passes/drop_gradients.h):
//   momentum_decay(m, w, scalars) {momentum, weight_decay, stochastic: 1?, key?} -> momentum m + weight_decay w in the first
//     microbatch of a step, m in the others
//   momentum_add(m, g, scalars) {summand, stochastic: 1?, key?} -> m + g; of several to the same m in a microbatch, each has
//     a number `summand` of its own
//   momentum_step(w, scalars, m) {stochastic: 1?, key?} -> w - learning_rate m, w when skip_update is set
// 16-bit numbers are rounded as in sgd. A microbatch's gradient is a small part of a momentum, often less than the distance of
// two bfloat16s: with stochastic rounding, drawn anew for every microbatch, such summands survive on average.

namespace snug::ops {

namespace {

std::vector<Type> infer_decay(const OpCall& call) {
  require_inputs(call, 3);
  require_rounding_key(call.attributes);
  require_same_shape(call.inputs[0], call.inputs[1], "the momentum and the weight");
  require_scalars(call.inputs[2]);
  const double momentum = call.attributes.real("momentum");
  if (!(momentum > 0 && momentum < 1)) throw_user_error("momentum {} is not in (0, 1)", momentum);
  if (!(call.attributes.real("weight_decay") >= 0))
    throw_user_error("weight decay {} is negative", call.attributes.real("weight_decay"));
  return {call.inputs[0]};
}

std::vector<Type> infer_add(const OpCall& call) {
  require_inputs(call, 3);
  require_rounding_key(call.attributes);
  const std::int64_t summand = call.attributes.integer("summand");
  if (summand < 0 || summand >= kSummands) throw_user_error("the summand {} is not in 0 to {}", summand, kSummands - 1);
  require_same_shape(call.inputs[0], call.inputs[1], "the momentum and the gradient");
  require_scalars(call.inputs[2]);
  return {call.inputs[0]};
}

std::vector<Type> infer_step(const OpCall& call) {
  require_inputs(call, 3);
  require_rounding_key(call.attributes);
  require_scalars(call.inputs[1]);
  require_same_shape(call.inputs[0], call.inputs[2], "the weight and the momentum");
  return {call.inputs[0]};
}

}  // namespace

constinit const OpDef momentum_add{.name = "momentum_add",
                                   .infer = infer_add,
                                   .flops = flops_per_output_element<1>,
                                   .in_place = kFirstInPlace,
                                   .may_recompute = false};

constinit const OpDef momentum_decay{.name = "momentum_decay",
                                     .infer = infer_decay,
                                     .flops = flops_per_output_element<3>,
                                     .in_place = kFirstInPlace,
                                     .may_recompute = false,
                                     .stands_for = &sgd};

constinit const OpDef momentum_step{.name = "momentum_step",
                                    .infer = infer_step,
                                    .flops = flops_per_output_element<2>,
                                    .in_place = kFirstInPlace,
                                    .may_recompute = false,
                                    .is_early_step = true,
                                    .is_auxiliary = true};

}  // namespace snug::ops
