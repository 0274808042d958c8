#include "ops/updates/sgd.h"

#include <array>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/random_draws.h"
#include "ops/updates/coded_states.h"
#include "ops/updates/update_rule.h"

// sgd(w, g, scalars, m?, gradient_norm?) {momentum, weight_decay, nesterov: 0|1, stochastic: 1?, key?} -> w, g (zeroed), m
//   g += weight_decay w;  m = momentum m + g;  w -= learning_rate (nesterov ? g + momentum m : m)      (PyTorch's rule)
// The gradient is first divided by loss_scale, and multiplied by the factor that clips it where there is a gradient_norm. When
// skip_update is set, or that factor is not finite, only the gradient is cleared. There is a momentum when the attribute is above
// 0. What is stored in 16 bits is rounded to nearest, or with stochastic=1 stochastically, keyed by (seed, step, key): small
// updates then survive on average, which a bfloat16's eight bits would lose. The gradient is treated as a sum that started at +0,
// which is never -0: a gradient that was never added to anything gives the same bits.

namespace snug::ops {

bool sgd_has_momentum(const Attributes& attributes) { return attributes.real("momentum") > 0; }

std::size_t sgd_norm_input(const Attributes& attributes) { return sgd_has_momentum(attributes) ? 4 : 3; }

bool sgd_clips(const Attributes& attributes, std::size_t inputs) { return inputs > sgd_norm_input(attributes); }

bool sgd_rounds_stochastically(const Attributes& attributes) { return attributes.integer_or("stochastic", 0) != 0; }

void require_rounding_key(const Attributes& attributes) {
  if (!sgd_rounds_stochastically(attributes)) return;
  const std::int64_t key = attributes.integer("key");
  if (key < 0 || key > kMostRoundingKey) throw_user_error("the key {} is not in 0 to {}", key, kMostRoundingKey);
}

namespace {

std::vector<Type> infer(const OpCall& call) {
  const double momentum = call.attributes.real("momentum");
  if (!(momentum >= 0 && momentum < 1)) throw_user_error("momentum {} is not in [0, 1)", momentum);
  if (!(call.attributes.real("weight_decay") >= 0))
    throw_user_error("weight decay {} is negative", call.attributes.real("weight_decay"));
  if (call.attributes.integer("nesterov") != 0 && momentum == 0) throw_user_error("Nesterov needs a momentum above 0");
  require_rounding_key(call.attributes);
  const std::size_t norm = sgd_norm_input(call.attributes);
  require_inputs(call, norm, norm + 1);
  require_shape(call.inputs[1], call.inputs[0].shape, "the gradient");
  require_scalars(call.inputs[2]);
  std::vector<Type> outputs{call.inputs[0], call.inputs[1]};
  if (momentum > 0) {
    require_shape(call.inputs[3], call.inputs[0].shape, "the momentum");
    outputs.push_back(call.inputs[3]);
  }
  if (sgd_clips(call.attributes, call.inputs.size()) && call.inputs[norm] != gradient_norm_type()) {
    throw_user_error("the gradient norm is {}; it must be {}", to_string(call.inputs[norm]), to_string(gradient_norm_type()));
  }
  return outputs;
}

// One more multiplication per element where gradients are clipped.
std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return (sgd_clips(attributes, types.inputs.size()) ? 7 : 6) * types.inputs[0].elements();
}

constexpr std::array<std::string_view, 3> kOutputs{"weight", "gradient", "momentum"};
constexpr std::array<InPlacePromise, 3> kInPlace{{{0, 0}, {1, 1}, {2, 3}}};

std::string_view objection_to_feeding(const Attributes& attributes) {
  if (!sgd_has_momentum(attributes)) return "without a momentum there is nothing to add them to; set one";
  if (attributes.integer("nesterov") != 0)
    return "Nesterov's step needs the gradient beside the momentum; say nesterov = false, --nesterov no";
  return {};
}

constexpr UpdateFacts kUpdate{
    .states = [](const Attributes& attributes) { return std::size_t{sgd_has_momentum(attributes) ? 1U : 0U}; },
    .fed_early = {.decay = &momentum_decay, .add = &momentum_add, .step = &momentum_step, .objection = objection_to_feeding}};

void check_settings(const Attributes& settings) {
  const std::int64_t bits = settings.integer("momentum_bits");
  if (bits != 32 && bits != 8) throw_user_error("a momentum of {} bits is not possible; use 8, or 32 for a plain one", bits);
  if (bits == 8 && settings.real("momentum") <= 0)
    throw_user_error("a momentum in 8 bits needs a momentum above 0; set one or leave out --momentum-bits");
}

ParameterUpdate update_of(const UpdatedParameter& updated, const Attributes& settings) {
  const Type& parameter = updated.type;
  ParameterUpdate update{.op = &sgd, .states = {}, .attributes = {}};
  for (const char* name : {"momentum", "weight_decay"}) update.attributes.set(name, settings.real(name));
  update.attributes.set("nesterov", settings.integer("nesterov"));
  const bool in_codes = settings.integer("momentum_bits") == 8 && is_worth_quantizing(parameter);
  if (in_codes) {
    const std::array<Type, 2> types = quantized_momentum_types(parameter);
    update.op = &sgd_quantized;
    update.states = {{"codes", "momentum.codes" + order_suffix(parameter.layout), types[0]},
                     {"scales", "momentum.scales" + order_suffix(parameter.layout), types[1]}};
  } else if (settings.real("momentum") > 0) {
    update.states = {{"momentum", "momentum", parameter}};
  }
  return update;
}

}  // namespace

constinit const OpDef sgd{.name = "sgd",
                          .infer = infer,
                          .flops = flops,
                          .in_place = kInPlace,
                          .outputs = kOutputs,
                          .may_recompute = false,
                          .update = &kUpdate};

Attributes sgd_settings(const SgdSettings& settings) {
  return {{"momentum", settings.momentum},
          {"weight_decay", settings.weight_decay},
          {"nesterov", std::int64_t{settings.nesterov ? 1 : 0}},
          {"momentum_bits", std::int64_t{settings.momentum_bits}}};
}

constinit const UpdateRule sgd_rule{
    .name = "sgd", .defaults = [] { return sgd_settings({}); }, .check = check_settings, .update_of = update_of};

}  // namespace snug::ops
