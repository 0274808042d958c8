// The lowest placement there is, for problems of a few dozen items.
#pragma once

#include <cstdint>
#include <optional>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace snug::placement {

// Looks for a placement lower than `ceiling`; ends early at one of height `floor`, which must be a lower bound. Every item put
// down counts one from nodes_left. With nodes left at the end, the answer is a lowest placement, and nothing means that none is
// lower than the ceiling; with none left it is the best found.
std::optional<Placement> branch_and_bound(const Problem& problem, const Timeline& timeline, Bytes floor, Bytes ceiling,
                                          std::int64_t& nodes_left);

}  // namespace snug::placement
