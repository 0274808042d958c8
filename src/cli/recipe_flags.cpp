#include "cli/recipe_flags.h"

#include "api/prepare.h"
#include "base/error.h"
#include "cli/output.h"

namespace snug::cli {

bool names_recipe(const Flags& flags) { return flags.model && flags.model->ends_with(".toml"); }

settings::Recipe recipe_of(const Flags& flags) {
  if (!flags.model) {
    throw_user_error("'snug {0}' needs a model or a recipe, as in 'snug {0} small-cnn' (see 'snug {0} --help')", flags.command);
  }
  const settings::Recipe recipe =
      names_recipe(flags) ? settings::read_recipe(*flags.model) : settings::Recipe{.model = *flags.model};
  // A recipe's own, since the flag is train's alone.
  if (recipe.process_budget && flags.command != "train")
    note("snug: only 'snug train' measures what process_budget leaves to the arena; it is not looked at here");
  settings::Recipe told = told_recipe(recipe, flags.knobs, settings::SaidBy::flags);
  check_model_reads(told, settings::SaidBy::flags);
  return told;
}

}  // namespace snug::cli
