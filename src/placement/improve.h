// Iterative improvement: items that ended up too high are placed earlier next time.
#pragma once

#include <cstdint>

#include "placement/heuristics.h"
#include "placement/problem.h"
#include "placement/timeline.h"

namespace snug::placement {

struct Attempt {
  Order order;
  Placement placement;  // of that order
};

// Places again and again, each time with the items that stuck out moved halfway to the front of the order ("squeaky wheel"
// optimization, Joslin and Clements 1999). Returns the lowest placement met, which may be the one it started with. Ends at the
// target height, after `patience` rounds without a gain, or when another round would cost more than nodes_left. Every item put
// down decrements nodes_left.
Placement improve(const Problem& problem, const Timeline& timeline, Attempt start, Bytes target, int patience,
                  std::int64_t& nodes_left);

}  // namespace snug::placement
