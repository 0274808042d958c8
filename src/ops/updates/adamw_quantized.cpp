#include <array>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/updates/adamw.h"
#include "ops/updates/coded_states.h"
#include "ops/updates/sgd.h"

// adamw_quantized(w, g, scalars, m u8[elements], v u8[elements], scales f32[blocks x 2], updates f64[1], gradient_norm?)
//     {beta1, beta2, epsilon, weight_decay, stochastic: 1?, key?} -> w, g (zeroed), m, v, scales
// adamw with moments in 8 bits (ops/updates/block_code.h), in the order in which the weight's elements lie in memory, padding of
// its layout included. A block has two scales, the first moments' and the second moments'. Block by block the moments are
// decoded, moved and used in f32, one rounding per operation, then rounded to the nearest code under the block's new scale,
// except that a second moment above 0 is never stored as 0. A 16-bit weight is then rounded as in sgd.

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  check_adamw_settings(call.attributes);
  require_rounding_key(call.attributes);
  require_inputs(call, 7, 8);
  const Type& weight = call.inputs[0];
  const auto require = [&](std::size_t input, const char* what, const Type& expected) {
    if (call.inputs[input] != expected)
      throw_user_error("{} is {}; it must be {}", what, to_string(call.inputs[input]), to_string(expected));
  };
  require(1, "the gradient", weight);
  require_scalars(call.inputs[2]);
  require(3, "the first moment", codes_type(weight));
  require(4, "the second moment", codes_type(weight));
  require(5, "the moments' pair of scales", block_scales_type(weight));
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

constinit const OpDef adamw_quantized{.name = "adamw_quantized",
                                      .infer = infer,
                                      .flops = flops_per_input_element<42>,
                                      .in_place = kInPlace,
                                      .outputs = kOutputs,
                                      .may_recompute = false,
                                      .update = &kUpdate};

}  // namespace snug::ops
