// From flags to a recipe.
#pragma once

#include "cli/flags.h"
#include "data/dataset.h"
#include "plan/frontier.h"
#include "train/recipe.h"

namespace snug::cli {

// Whether MODEL is the name of a recipe's file.
bool names_recipe(const Flags& flags);

// The recipe that MODEL names or, where it is the name of a model, a recipe with the defaults; then every flag that was given.
train::Recipe recipe_of(const Flags& flags);

// What that recipe asks of the planner. A precision that was given is obeyed, fp32 too: no other is chosen, nor advised.
FitRequest request_of(const Flags& flags, const train::Recipe& recipe, const data::Description& data, CostTable costs = {});

// UserError naming the first flag that was given: a run goes on as its folder says.
void refuse_flags_on_resume(const Flags& flags);

// UserError unless `now` differs from what the run was made with only in what its saved plan leaves open: how long it goes on,
// the learning rate and its schedule, how often it is tested and saved.
void refuse_other_run(const train::Recipe& made_with, const train::Recipe& now);

}  // namespace snug::cli
