#include <array>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/updates/update_rule.h"

// adamw(w, g, scalars, m, v, updates f64[1], gradient_norm?) {beta1, beta2, epsilon, weight_decay} -> w, g (zeroed), m, v
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  t = updates, this one counted
//   w = w (1 - learning_rate weight_decay) - learning_rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// PyTorch's AdamW (Loshchilov and Hutter, 2019). The gradient is divided by loss_scale and clipped as in sgd, and a step that is
// skipped changes nothing but the gradient.
//
// count_update(updates f64[1], scalars, gradient_norm?) -> updates + 1, or unchanged where the step is skipped: the bias
// correction counts the updates that were made.

namespace snug::ops {

namespace {

void require_fraction(const Attributes& attributes, const char* name) {
  if (const double value = attributes.real(name); !(value >= 0 && value < 1))
    throw_user_error("{} {} is not in [0, 1)", name, value);
}

void check_settings(const Attributes& settings) {
  require_fraction(settings, "beta1");
  require_fraction(settings, "beta2");
  if (!(settings.real("epsilon") > 0)) throw_user_error("epsilon {} is not above 0", settings.real("epsilon"));
  if (!(settings.real("weight_decay") >= 0)) throw_user_error("weight decay {} is negative", settings.real("weight_decay"));
}

void require_updates(const Type& type) {
  if (type != updates_type())
    throw_user_error("the count of updates is {}; it must be {}", to_string(type), to_string(updates_type()));
}

void require_norm(const OpCall& call, std::size_t at) {
  if (call.inputs.size() > at && call.inputs[at] != gradient_norm_type())
    throw_user_error("the gradient norm is {}; it must be {}", to_string(call.inputs[at]), to_string(gradient_norm_type()));
}

std::vector<Type> infer(const OpCall& call) {
  check_settings(call.attributes);
  require_inputs(call, 6, 7);
  require_shape(call.inputs[1], call.inputs[0].shape, "the gradient");
  require_scalars(call.inputs[2]);
  require_shape(call.inputs[3], call.inputs[0].shape, "the first moment");
  require_shape(call.inputs[4], call.inputs[0].shape, "the second moment");
  require_updates(call.inputs[5]);
  require_norm(call, 6);
  return {call.inputs[0], call.inputs[1], call.inputs[3], call.inputs[4]};
}

std::vector<Type> infer_count(const OpCall& call) {
  require_inputs(call, 2, 3);
  require_updates(call.inputs[0]);
  require_scalars(call.inputs[1]);
  require_norm(call, 2);
  return {call.inputs[0]};
}

constexpr std::array<std::string_view, 4> kOutputs{"weight", "gradient", "first", "second"};
constexpr std::array<InPlacePromise, 4> kInPlace{{{0, 0}, {1, 1}, {2, 3}, {3, 4}}};
constexpr UpdateFacts kUpdate{.states = [](const Attributes&) { return std::size_t{2}; },
                              .reads_updates = true,
                              .fed_early = {.objection = [](const Attributes&) -> std::string_view {
                                return "AdamW squares the whole gradient; use sgd, or leave out the pass";
                              }}};

Attributes defaults() { return {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 1e-2}}; }

ParameterUpdate update_of(const Type& parameter, const Attributes& settings) {
  return {.op = &adamw,
          .states = {{"first_moment", "first_moment", parameter}, {"second_moment", "second_moment", parameter}},
          .attributes = settings};
}

}  // namespace

Type updates_type() { return {.dtype = DType::f64, .shape = {1}}; }

constinit const OpDef adamw{.name = "adamw",
                            .infer = infer,
                            .flops = flops_per_input_element<14>,
                            .in_place = kInPlace,
                            .outputs = kOutputs,
                            .may_recompute = false,
                            .update = &kUpdate};

constinit const OpDef count_update{
    .name = "count_update", .infer = infer_count, .in_place = kFirstInPlace, .may_recompute = false};

constinit const UpdateRule adamw_rule{.name = "adamw", .defaults = defaults, .check = check_settings, .update_of = update_of};

}  // namespace snug::ops
