// The optimizers that a run can be trained with, and what each does where nothing is told.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "ops/updates/update_rule.h"
#include "settings/recipe.h"

namespace snug::settings {

inline constexpr std::array<std::string_view, 2> kOptimizers{"sgd", "adamw"};

// What is wrong with a recipe whose optimizer is of this kind: the key, and the end of a sentence about it.
struct OptimizerObjection {
  std::string key;
  std::string sentence;
};
std::optional<OptimizerObjection> objection_to_optimizer(const Recipe& recipe, std::string_view kind, SaidBy said_by);

// The optimizer that the recipe names, or else one whose settings it has; empty where it has none.
std::string optimizer_by_settings(const Recipe& recipe);

// The recipe with everything about its optimizer told; `suitable`: the kind, where the recipe leaves it open. UserError about a
// setting of another optimizer.
Recipe with_whole_optimizer(Recipe recipe, std::string_view suitable, SaidBy said_by = SaidBy::recipe);

// As the compiler is told, of a recipe with a whole optimizer.
ops::UpdateOptions update_options(const OptimizerRecipe& optimizer);

}  // namespace snug::settings
