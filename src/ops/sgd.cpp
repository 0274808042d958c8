#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// sgd(w, g, scalars, m?) {momentum, weight_decay, nesterov: 0|1} -> w, g (zeroed), m
//   g += weight_decay w;  m = momentum m + g;  w -= learning_rate (nesterov ? g + momentum m : m)      (PyTorch's rule)
// The gradient is first divided by loss_scale; when skip_update is set only the gradient is cleared.

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  const double momentum = call.attributes.real("momentum");
  if (!(momentum >= 0 && momentum < 1)) throw_user_error("momentum {} is not in [0, 1)", momentum);
  if (!(call.attributes.real("weight_decay") >= 0))
    throw_user_error("weight decay {} is negative", call.attributes.real("weight_decay"));
  if (call.attributes.integer("nesterov") != 0 && momentum == 0) throw_user_error("Nesterov needs a momentum above 0");
  require_inputs(call, momentum > 0 ? 4 : 3);
  require_shape(call.inputs[1], call.inputs[0].shape, "the gradient");
  require_scalars(call.inputs[2]);
  std::vector<Type> outputs{call.inputs[0], call.inputs[1]};
  if (momentum > 0) {
    require_shape(call.inputs[3], call.inputs[0].shape, "the momentum");
    outputs.push_back(call.inputs[3]);
  }
  return outputs;
}

constexpr std::array<std::string_view, 3> kOutputs{"weight", "gradient", "momentum"};
constexpr std::array<InPlacePromise, 3> kInPlace{{{0, 0}, {1, 1}, {2, 3}}};

}  // namespace

constinit const OpDef sgd{.name = "sgd",
                          .infer = infer,
                          .flops = flops_per_input_element<6>,
                          .in_place = kInPlace,
                          .outputs = kOutputs,
                          .may_recompute = false};

}  // namespace snug::ops
