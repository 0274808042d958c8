// Checks placements. It shares nothing with the heuristics and the search, not even their timeline.
#pragma once

#include <optional>
#include <string>

#include "placement/problem.h"

namespace snug::placement {

// Nothing when the placement solves the problem, otherwise one sentence about the first thing wrong with it: the number of
// offsets, a negative or misaligned offset, an item above the height, a height that is not the end of the highest item, or two
// items that share bytes while both are alive. Takes O(n log n) time.
std::optional<std::string> find_violation(const Problem& problem, const Placement& placement);

}  // namespace snug::placement
