// The lowest possible placement, for problems of a few dozen items.
#pragma once

#include <cstdint>
#include <optional>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace snug::placement {

// Searches for a placement lower than `ceiling`; ends early at one of height `floor`, which must be a lower bound. Every item put
// down decrements nodes_left. If nodes are left at the end, the result is a lowest placement, or nothing if none is lower than
// the ceiling; otherwise it is the best found.
std::optional<Placement> branch_and_bound(const Problem& problem, const Timeline& timeline, Bytes floor, Bytes ceiling,
                                          std::int64_t& nodes_left);

}  // namespace snug::placement
