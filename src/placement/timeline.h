// The lifetimes of a problem with the fewest equivalent time steps.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/problem.h"

namespace snug::placement {

// Half-open, in moments.
struct Span {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  bool contains(Span other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(Span other) const { return begin < other.end && other.begin < end; }
};

// A moment is a maximal set of items alive together: steps between which items only begin, or only end, make one moment. Two
// items share a moment exactly when they share a step, so placing by moments is placing by steps, with far fewer of them.
struct Timeline {
  std::vector<Span> spans;  // of each item; empty for an item of no bytes
  std::int32_t moments = 0;
};

Timeline make_timeline(const Problem& problem);

}  // namespace snug::placement
