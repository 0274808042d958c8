// From flags to a recipe.
#pragma once

#include "cli/flags.h"
#include "settings/recipe.h"

namespace snug::cli {

// Whether MODEL is the name of a recipe's file.
bool names_recipe(const Flags& flags);

// The recipe's file that MODEL names, or a recipe for that model; flags say more than either.
settings::Recipe recipe_of(const Flags& flags);

}  // namespace snug::cli
