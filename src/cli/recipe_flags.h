// From flags to a recipe.
#pragma once

#include "cli/flags.h"
#include "train/recipe.h"

namespace snug::cli {

// The recipe that MODEL names or, where it is the name of a model, a recipe with the defaults; then every flag that was given.
train::Recipe recipe_of(const Flags& flags);

// UserError naming the first flag that was given and cannot be changed when a run goes on.
void refuse_changes_on_resume(const Flags& flags);

}  // namespace snug::cli
