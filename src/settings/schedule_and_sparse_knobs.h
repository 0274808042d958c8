// Rows of the table of knobs: the tables [schedule] and [sparse] of a recipe. The others are in knobs.cpp and
// optimizer_knobs.cpp.
#pragma once

#include <span>

#include "settings/knobs.h"

namespace snug::settings {

inline constexpr CountRange kSteps{1, 1'000'000'000'000};
inline constexpr Offered kAlsoPaper = Offered::program | Offered::paper;

std::span<const Knob> schedule_and_sparse_knobs();

}  // namespace snug::settings
