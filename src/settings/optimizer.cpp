#include "settings/optimizer.h"

#include "base/error.h"
#include "settings/knobs.h"

namespace snug::settings {

namespace {

double usual_learning_rate(std::string_view kind) { return kind == "adamw" ? 3e-4 : 0.1; }

// Whether the recipe says more than what holds anyway.
bool says(const Recipe& recipe, const Knob& knob) {
  Recipe done = recipe;
  done.methods = normalized(recipe.methods);
  return !is_same(knob, done, Recipe());
}

template <typename T>
void fill(std::optional<T>& told, const T& otherwise) {
  if (!told) told = otherwise;
}

}  // namespace

std::optional<OptimizerObjection> objection_to_optimizer(const Recipe& recipe, std::string_view kind, SaidBy said_by) {
  const auto say = [&](std::string_view in_recipe, std::string_view in_flags) {
    return said_by == SaidBy::flags ? in_flags : in_recipe;
  };
  for (const Knob& knob : knobs()) {
    if (knob.optimizer.empty() || knob.optimizer == kind || !says(recipe, knob)) continue;
    return OptimizerObjection{
        .key = std::string(knob.key),
        .sentence = fmt::format("is a setting of {0}, and the optimizer is {1}; leave it out, or use {2}{0}{3}", knob.optimizer,
                                kind, say("kind = \"", "--optimizer "), say("\"", ""))};
  }
  if (kind != "sgd") return std::nullopt;
  const OptimizerRecipe& optimizer = recipe.optimizer;
  const bool has_momentum = optimizer.momentum.value_or(1) > 0;
  if (!has_momentum && optimizer.nesterov.value_or(true)) {
    return OptimizerObjection{.key = "optimizer.momentum",
                              .sentence = fmt::format("of 0 goes only with {}; say that, or use a momentum above 0",
                                                      say("nesterov = false", "--nesterov no"))};
  }
  if (!has_momentum && says(recipe, knob("optimizer.momentum_bits")))
    return OptimizerObjection{.key = "optimizer.momentum_bits", .sentence = "needs a momentum above 0; set one or leave it out"};
  return std::nullopt;
}

std::string optimizer_by_settings(const Recipe& recipe) {
  if (recipe.optimizer.kind) return *recipe.optimizer.kind;
  for (const Knob& knob : knobs()) {
    if (!knob.optimizer.empty() && says(recipe, knob)) return std::string(knob.optimizer);
  }
  return {};
}

Recipe with_whole_optimizer(Recipe recipe, std::string_view suitable, SaidBy said_by) {
  OptimizerRecipe& optimizer = recipe.optimizer;
  fill(optimizer.kind, std::string(suitable));
  if (const auto objection = objection_to_optimizer(recipe, *optimizer.kind, said_by))
    throw_user_error("{} {}", name_of(knob(objection->key), said_by), objection->sentence);
  const Attributes usual = ops::find_update_rule(*optimizer.kind).defaults();
  fill(optimizer.learning_rate, usual_learning_rate(*optimizer.kind));
  fill(optimizer.weight_decay, usual.real("weight_decay"));
  if (optimizer.kind == "adamw") {
    fill(optimizer.beta1, usual.real("beta1"));
    fill(optimizer.beta2, usual.real("beta2"));
    fill(optimizer.epsilon, usual.real("epsilon"));
    fill(optimizer.decay_norms, usual.integer("decay_norms") != 0);
  } else {
    fill(optimizer.momentum, usual.real("momentum"));
    fill(optimizer.nesterov, usual.integer("nesterov") != 0);
  }
  return recipe;
}

ops::UpdateOptions update_options(const OptimizerRecipe& optimizer) {
  SNUG_CHECK(optimizer.kind && optimizer.weight_decay, "an optimizer of which not all is told");
  ops::UpdateOptions options{.rule = *optimizer.kind, .clip_norm = optimizer.clip_norm.value_or(0)};
  options.settings.set("weight_decay", *optimizer.weight_decay);
  const auto set = [&](const char* name, std::optional<double> value) {
    if (value) options.settings.set(name, *value);
  };
  set("momentum", optimizer.momentum);
  set("beta1", optimizer.beta1);
  set("beta2", optimizer.beta2);
  set("epsilon", optimizer.epsilon);
  if (optimizer.nesterov) options.settings.set("nesterov", std::int64_t{*optimizer.nesterov});
  if (optimizer.decay_norms) options.settings.set("decay_norms", std::int64_t{*optimizer.decay_norms});
  return options;
}

}  // namespace snug::settings
