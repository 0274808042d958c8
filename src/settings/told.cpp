#include "settings/told.h"

#include <algorithm>

#include "base/error.h"
#include "plan/allowance.h"
#include "settings/optimizer.h"

namespace snug::settings {

namespace {

// The settings of a recipe's optimizer do not go with another one that is told.
void leave_optimizer(const Told& told, Recipe& recipe) {
  const auto kind = told.find("optimizer.kind");
  const std::string before = optimizer_by_settings(recipe);
  if (kind == told.end() || before.empty() || before == kind->second.back()) return;
  for (const Knob& knob : knobs()) {
    const bool suits_the_kind = knob.key == "optimizer.learning_rate" || knob.key == "optimizer.weight_decay";
    if (suits_the_kind || (!knob.optimizer.empty() && knob.optimizer != kind->second.back())) reset(knob, recipe);
  }
}

void take_all(const Told& told, Recipe& recipe, SaidBy said_by) {
  leave_optimizer(told, recipe);
  for (const auto& [key, texts] : told) take(knob(key), texts, recipe, said_by);
  const bool epochs = told.contains("epochs"), steps = told.contains("steps");
  if (epochs && steps) {
    throw_user_error("{} and {} both say how long; leave out one of them", name_of(knob("epochs"), said_by),
                     name_of(knob("steps"), said_by));
  }
  if (told.contains("budget") && told.contains("process_budget")) {
    throw_user_error("{} and {} are both budgets; leave out one of them", name_of(knob("budget"), said_by),
                     name_of(knob("process_budget"), said_by));
  }
  if (told.contains("budget")) recipe.process_budget.reset();
  if (epochs) recipe.steps.reset();
  if (steps) recipe.epochs.reset();
  // A recipe's milestones go with its schedule.
  if (told.contains("schedule.kind") && recipe.schedule.kind != "step" && !told.contains("schedule.milestones"))
    recipe.schedule.milestones.clear();
}

// Splitting the batch or recomputing does not make another model of it, and stays allowed.
void leave_no_choice(Recipe& recipe) {
  for (const Knob& knob : knobs()) {
    if (!knob.is_chosen || *knob.exactness <= Exactness::microbatch || is_same(knob, recipe, Recipe())) continue;
    std::erase(recipe.allow, snug::name_of(*knob.exactness));
  }
  if (recipe.allow.empty()) recipe.allow = Recipe().allow;
}

}  // namespace

Recipe told_recipe(Recipe recipe, const Told& told, SaidBy said_by) {
  take_all(told, recipe, said_by);
  // Earlier versions wrote fp32 where nothing was told; beside a list that allows 16 bits it can mean nothing else.
  if (!told.contains("precision") && recipe.methods.precision == DType::f32 &&
      std::ranges::find(recipe.allow, "precision") != recipe.allow.end()) {
    recipe.methods.precision.reset();
  }
  leave_no_choice(recipe);
  check_recipe(recipe, said_by);
  return recipe;
}

Recipe resumed_recipe(Recipe recipe, const Told& told, SaidBy said_by) {
  for (const auto& [key, texts] : told) {
    if (!knob(key).may_change)
      throw_user_error("a resumed run follows recipe.toml in its folder; leave out {}", name_of(knob(key), said_by));
  }
  take_all(told, recipe, said_by);
  check_recipe(recipe, said_by);
  return recipe;
}

void refuse_for_other_data(const Knob& knob, const Recipe& recipe, data::Kind reads, SaidBy said_by) {
  if (!knob.reads || *knob.reads == reads) return;
  const auto name_of_kind = [](data::Kind kind) { return kind == data::Kind::text ? "text" : "images"; };
  throw_user_error("'{}' reads {}, and {} is for models that read {}; leave it out", recipe.model, name_of_kind(reads),
                   name_of(knob, said_by), name_of_kind(*knob.reads));
}

void refuse_other_run(const Recipe& made_with, const Recipe& now) {
  const auto value_of = [](const Knob& knob, const Recipe& recipe) {
    return is_told(knob, recipe) ? print_value(knob, recipe) : std::string("nothing");
  };
  for (const Knob& knob : knobs()) {
    if (knob.may_change || is_same(knob, made_with, now)) continue;
    throw_user_error(
        "recipe.toml asks for another run than the one its folder holds: {} is {}, and was {}; put it back, or train in "
        "another folder",
        knob.key, value_of(knob, now), value_of(knob, made_with));
  }
}

}  // namespace snug::settings
