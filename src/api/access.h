// What the installed classes hold, for Snug's own sources alone.
#pragma once

#include "api/model_impl.h"
#include "settings/told.h"
#include <snug/recipe.h>

namespace snug {

struct Recipe::Impl {
  settings::Recipe base;  // a file's, or the model alone
  settings::Told told;    // what was set

  settings::Recipe whole() const { return told_recipe(base, told, settings::SaidBy::recipe); }
};

struct Access {
  static const Model::Impl& of(const Model& model) { return *model.impl_; }
  static const Recipe::Impl& of(const Recipe& recipe) { return *recipe.impl_; }
};

}  // namespace snug
