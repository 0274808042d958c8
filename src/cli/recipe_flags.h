// From flags to a recipe.
#pragma once

#include "cli/flags.h"
#include "data/dataset.h"
#include "plan/frontier.h"
#include "settings/recipe.h"

namespace snug::cli {

// Whether MODEL is the name of a recipe's file.
bool names_recipe(const Flags& flags);

// The recipe that MODEL names or, where it is the name of a model, a recipe with the defaults; then every flag that was given.
settings::Recipe recipe_of(const Flags& flags);

// A sentence where --checkpoint limits bytes that no plan can keep to: the plan then takes the least that was found.
std::vector<std::string> unkept_limits(const FitRequest& request, const Plan& plan);

// The recipe of a run that goes on, with the flags that were given. UserError naming the first that cannot change.
settings::Recipe recipe_to_resume(const Flags& flags, settings::Recipe recipe);

// UserError unless `now` differs from what the run was made with only in what its saved plan leaves open: how long it goes on,
// the learning rate and its schedule, how often it is tested and saved. It names the first difference.
void refuse_other_run(const settings::Recipe& made_with, const settings::Recipe& now);

}  // namespace snug::cli
