#include "ops/updates/adamw.h"

#include <array>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/updates/block_code.h"
#include "ops/updates/coded_states.h"
#include "ops/updates/sgd.h"
#include "ops/updates/update_rule.h"

// adamw(w, g, scalars, m, v, updates f64[1], gradient_norm?) {beta1, beta2, epsilon, weight_decay, stochastic: 1?, key?}
//     -> w, g (zeroed), m, v
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  t = updates, this one counted
//   w = w (1 - learning_rate weight_decay) - learning_rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// PyTorch's AdamW (Loshchilov and Hutter, 2019). The gradient is divided by loss_scale and clipped as in sgd, and a step that is
// skipped changes nothing but the gradient. The moments are stored as the weight is, or in f32 beside a weight of 16 bits. What
// is stored in 16 bits is rounded as in sgd, both moments with the same random number.
//
// count_update(updates f64[1], scalars, gradient_norm?) -> updates + 1, or unchanged where the step is skipped: the bias
// correction counts the updates that were made.

namespace snug::ops {

namespace {

void require_fraction(const Attributes& attributes, const char* name) {
  if (const double value = attributes.real(name); !(value >= 0 && value < 1))
    throw_user_error("{} {} is not in [0, 1)", name, value);
}

void require_moments(const Type& weight, const Type& first, const Type& second) {
  require_shape(first, weight.shape, "the first moment");
  require_shape(second, weight.shape, "the second moment");
  if (first.dtype != second.dtype || (first.dtype != weight.dtype && first.dtype != statistics_dtype(weight.dtype))) {
    throw_user_error("the moments of {} are {} and {}; both must be as it is, or f32", to_string(weight), to_string(first),
                     to_string(second));
  }
}

std::vector<Type> infer(const OpCall& call) {
  check_adamw_settings(call.attributes);
  require_rounding_key(call.attributes);
  require_inputs(call, 6, 7);
  require_shape(call.inputs[1], call.inputs[0].shape, "the gradient");
  require_scalars(call.inputs[2]);
  require_moments(call.inputs[0], call.inputs[3], call.inputs[4]);
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
                              .fed_early = {.objection = adamw_objection_to_feeding}};

Attributes defaults() {
  return {{"beta1", 0.9},
          {"beta2", 0.999},
          {"epsilon", 1e-8},
          {"weight_decay", 1e-2},
          {"decay_norms", std::int64_t{0}},   // 1: parameters of one dimension decay, too
          {"moment_bits", std::int64_t{0}}};  // 32, 16 or 8 for all parameters; 0: 16 for those of 16 bits
}

void check_settings(const Attributes& settings) {
  check_adamw_settings(settings);
  if (const std::int64_t bits = settings.integer("moment_bits"); bits != 0 && bits != 8 && bits != 16 && bits != 32)
    throw_user_error("moments of {} bits are not possible; use 32, 16 or 8", bits);
}

// Where a parameter's moments are narrow; 32 elsewhere.
std::int64_t bits_of_moments(const Type& parameter, std::int64_t bits) {
  if (bits == 8) return is_worth_quantizing(parameter) ? 8 : 32;
  if (bits_per_element(parameter.dtype) == 16) return bits == 32 ? 32 : 16;
  return bits == 16 && parameter.dtype == DType::f32 && is_worth_quantizing(parameter) ? 16 : 32;
}

std::vector<ParameterUpdate::Kept> moments_of(const Type& parameter, std::int64_t bits) {
  if (bits == 8) {
    const Type codes = codes_type(parameter);
    const std::string order = order_suffix(parameter.layout);
    return {{"codes", "first_moment.codes" + order, codes},
            {"codes", "second_moment.codes" + order, codes},
            {"moment_scales", "moment_scales" + order, block_scales_type(parameter)}};
  }
  const Type moments = stored_as(parameter, bits == 16 ? DType::f16 : statistics_dtype(parameter.dtype));
  std::vector<ParameterUpdate::Kept> kept{{"first_moment", "first_moment", moments}, {"second_moment", "second_moment", moments}};
  if (bits == 16) kept.push_back({"moment_scales", "moment_scales", moment_scales_type()});
  return kept;
}

ParameterUpdate update_of(const UpdatedParameter& parameter, const Attributes& settings) {
  ParameterUpdate update{.op = &adamw, .states = {}, .attributes = {}};
  for (const char* name : {"beta1", "beta2", "epsilon"}) update.attributes.set(name, settings.real(name));
  const bool decays = !parameter.is_vector || settings.integer("decay_norms") != 0;
  update.attributes.set("weight_decay", decays ? settings.real("weight_decay") : 0.0);
  const std::int64_t bits = bits_of_moments(parameter.type, settings.integer("moment_bits"));
  if (bits < 32) update.op = bits == 8 ? &adamw_quantized : &adamw_scaled;
  update.states = moments_of(parameter.type, bits);
  return update;
}

}  // namespace

void check_adamw_settings(const Attributes& settings) {
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

Type updates_type() { return {.dtype = DType::f64, .shape = {1}}; }

Type moment_scales_type() { return {.dtype = DType::f32, .shape = {2}}; }

Type block_scales_type(const Type& weight) {
  return {.dtype = DType::f32, .shape = {code_blocks(codes_type(weight).elements()), 2}};
}

std::string_view adamw_objection_to_feeding(const Attributes& /*attributes*/) {
  return "AdamW squares the whole gradient; use sgd, or leave out the pass";
}

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
