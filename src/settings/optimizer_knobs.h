// Rows of the table of knobs: the table [optimizer] of a recipe.
#pragma once

#include <span>

#include "settings/knobs.h"

namespace snug::settings {

std::span<const Knob> optimizer_knobs();

}  // namespace snug::settings
