#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/updates/block_code.h"
#include "ops/updates/coded_states.h"
#include "ops/updates/sgd.h"

// sgd_quantized(w, g, scalars, codes u8[elements], scales f32[blocks], gradient_norm?)
//     {momentum, weight_decay, nesterov: 0|1, stochastic: 1?, key?} -> w, g (zeroed), codes, scales
// sgd with its momentum in 8 bits, in the order in which the weight's elements lie in memory, padding of its layout included.
// Block by block the momentum is decoded, updated and used in f32, then rounded to the nearest code under the block's new scale.
// The step uses the momentum before it is rounded. Everything is computed in f32, one rounding per operation. A 16-bit weight is
// then rounded as in sgd.

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  const double momentum = call.attributes.real("momentum");
  if (!(momentum > 0 && momentum < 1)) throw_user_error("momentum {} is not in (0, 1)", momentum);
  if (!(call.attributes.real("weight_decay") >= 0))
    throw_user_error("weight decay {} is negative", call.attributes.real("weight_decay"));
  call.attributes.integer("nesterov");
  require_rounding_key(call.attributes);
  require_inputs(call, 5, 6);
  const Type& weight = call.inputs[0];
  if (call.inputs[1] != weight)
    throw_user_error("the gradient is {}; it must be as the weight, {}", to_string(call.inputs[1]), to_string(weight));
  require_scalars(call.inputs[2]);
  const std::array<Type, 2> expected = quantized_momentum_types(weight);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (call.inputs[3 + i] != expected[i])
      throw_user_error("input {} is {}; it must be {}", 3 + i, to_string(call.inputs[3 + i]), to_string(expected[i]));
  }
  if (call.inputs.size() == 6 && call.inputs[5] != gradient_norm_type())
    throw_user_error("the gradient norm is {}; it must be {}", to_string(call.inputs[5]), to_string(gradient_norm_type()));
  return {weight, weight, expected[0], expected[1]};
}

constexpr std::array<std::string_view, 4> kOutputs{"weight", "gradient", "codes", "scales"};
constexpr std::array<InPlacePromise, 4> kInPlace{{{0, 0}, {1, 1}, {2, 3}, {3, 4}}};
constexpr UpdateFacts kUpdate{.states = [](const Attributes&) { return std::size_t{2}; },
                              .fed_early = {.objection = [](const Attributes&) -> std::string_view {
                                return "a momentum in 8 bits would be rounded at every addition; leave out one of the two";
                              }}};

}  // namespace

std::array<Type, 2> quantized_momentum_types(const Type& weight) {
  const Type codes = codes_type(weight);
  return {codes, Type{.dtype = DType::f32, .shape = {code_blocks(codes.elements())}}};
}

constinit const OpDef sgd_quantized{.name = "sgd_quantised",
                                    .infer = infer,
                                    .flops = flops_per_input_element<20>,
                                    .in_place = kInPlace,
                                    .outputs = kOutputs,
                                    .may_recompute = false,
                                    .update = &kUpdate};

}  // namespace snug::ops
