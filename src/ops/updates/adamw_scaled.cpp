#include <array>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/updates/adamw.h"
#include "ops/updates/sgd.h"

// adamw_scaled(w, g, scalars, m f16, v f16, scales f32[2], updates f64[1], gradient_norm?)
//     {beta1, beta2, epsilon, weight_decay, stochastic: 1?, key?} -> w, g (zeroed), m, v, scales
// adamw with moments in halves, each times the scale of its tensor (ops/updates/scaled_moments.h): the first of `scales` is m's,
// the second v's. The tensor is passed over twice: first its new moments' largest sizes are found, which say the new scales, then
// the moments are computed again, used as they are, and rounded. Moments that are not finite stay so, and take no part in the
// scales. With stochastic=1 the moments are rounded at random whatever the weight is stored in.

namespace snug::ops {

namespace {

void require_moment(const Type& moment, const Type& weight, const char* what) {
  if (const Type expected = stored_as(weight, DType::f16); moment != expected)
    throw_user_error("{} is {}; it must be {}", what, to_string(moment), to_string(expected));
}

std::vector<Type> infer(const OpCall& call) {
  check_adamw_settings(call.attributes);
  require_rounding_key(call.attributes);
  require_inputs(call, 7, 8);
  const Type& weight = call.inputs[0];
  if (call.inputs[1] != weight)
    throw_user_error("the gradient is {}; it must be as the weight, {}", to_string(call.inputs[1]), to_string(weight));
  require_scalars(call.inputs[2]);
  require_moment(call.inputs[3], weight, "the first moment");
  require_moment(call.inputs[4], weight, "the second moment");
  if (call.inputs[5] != moment_scales_type())
    throw_user_error("the moments' scales are {}; they must be {}", to_string(call.inputs[5]), to_string(moment_scales_type()));
  require_updates(call.inputs[6]);
  require_norm(call, 7);
  return {weight, weight, call.inputs[3], call.inputs[4], call.inputs[5]};
}

constexpr std::array<std::string_view, 5> kOutputs{"weight", "gradient", "first", "second", "scales"};
constexpr std::array<InPlacePromise, 5> kInPlace{{{0, 0}, {1, 1}, {2, 3}, {3, 4}, {4, 5}}};
constexpr UpdateFacts kUpdate{.states = [](const Attributes&) { return std::size_t{3}; },
                              .reads_updates = true,
                              .fed_early = {.objection = adamw_objection_to_feeding}};

}  // namespace

constinit const OpDef adamw_scaled{.name = "adamw_scaled",
                                   .infer = infer,
                                   .flops = flops_per_input_element<24>,
                                   .in_place = kInPlace,
                                   .outputs = kOutputs,
                                   .may_recompute = false,
                                   .update = &kUpdate};

}  // namespace snug::ops
