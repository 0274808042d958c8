// What is told beside a recipe's file, by flags or by a caller: knobs by key, each with its values as a flag takes them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "settings/knobs.h"
#include "settings/recipe.h"

namespace snug::settings {

using Told = std::map<std::string, std::vector<std::string>, std::less<>>;

// The recipe with all of it. What is told leaves the solver no choice: its level is no longer allowed. UserError about a value
// that is not possible, or values that do not go together.
Recipe told_recipe(Recipe recipe, const Told& told, SaidBy said_by);

// The recipe of a run that is resumed. UserError naming the first knob that cannot change then.
Recipe resumed_recipe(Recipe recipe, const Told& told, SaidBy said_by);

// UserError when the knob is one of models that read other data than the recipe's, which reads this kind.
void refuse_for_other_data(const Knob& knob, const Recipe& recipe, data::Kind reads, SaidBy said_by);

// UserError unless `now` differs from what the run was made with only in what may change when a run is resumed. It names the
// first difference.
void refuse_other_run(const Recipe& made_with, const Recipe& now);

}  // namespace snug::settings
