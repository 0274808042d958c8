// The entry point of this folder: places all items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "placement/problem.h"

namespace snug::placement {

// Counts, never seconds: the same problem gets the same placement on every machine. A node is one item put down, about a
// microsecond. With no nodes place() returns the best heuristic's placement, on training programs within about 2% of the bound.
struct SearchLimits {
  std::int64_t improvement_nodes = 200'000;
  std::int64_t exact_nodes = 100'000;
  std::size_t exact_items = 48;  // the largest problem that the exact search is tried on
};

struct Result {
  Placement placement;
  Bytes bound;              // lower_bound() of the problem
  std::string method;       // what found the placement
  std::int64_t nodes = 0;   // searched after the heuristics
  bool is_optimal = false;  // proven: it meets the bound, or the exact search was completed
};

// The lowest valid placement that the heuristics and the search find. Tiny problems are solved exactly; in large ones it stops
// less than one alignment above the bound.
Result place(const Problem& problem, const SearchLimits& limits = {});

}  // namespace snug::placement
