// From flags to a recipe.
#pragma once

#include "cli/flags.h"
#include "data/dataset.h"
#include "plan/frontier.h"
#include "settings/recipe.h"

namespace snug::cli {

// The number that a flag was given, within the limits of the recipe's key that means the same ("optimizer.momentum"); UserError
// naming the flag when it is none or out of range.
std::int64_t count_of(std::string_view key, std::string_view text);
double number_of(std::string_view key, std::string_view text);

// Whether MODEL is the name of a recipe's file.
bool names_recipe(const Flags& flags);

// The recipe that MODEL names or, where it is the name of a model, a recipe with the defaults; then every flag that was given.
settings::Recipe recipe_of(const Flags& flags);

// What that recipe asks of the planner. A precision that was given is obeyed, fp32 too: no other is chosen, nor advised.
FitRequest request_of(const Flags& flags, const settings::Recipe& recipe, const data::Description& data, CostTable costs = {});

// A sentence where --checkpoint limits bytes that no plan can keep to: the plan then takes the least that was found.
std::vector<std::string> unkept_limits(const FitRequest& request, const Plan& plan);

// UserError naming the first flag that was given: a run goes on as its folder says.
void refuse_flags_on_resume(const Flags& flags);

// UserError unless `now` differs from what the run was made with only in what its saved plan leaves open: how long it goes on,
// the learning rate and its schedule, how often it is tested and saved.
void refuse_other_run(const settings::Recipe& made_with, const settings::Recipe& now);

}  // namespace snug::cli
