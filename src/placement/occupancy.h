// Which bytes are occupied when. Finds the lowest free place for an item among those already placed, holes included, without
// looking at each of them: a training step of a thousand layers has 20,000 items, thousands of them alive together.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "placement/timeline.h"

namespace snug::placement {

// Half-open address ranges, disjoint and in order. Ranges that touch are one, so a dense placement leaves few of them.
class AddressSet {
 public:
  void add(Bytes begin, Bytes end);

  // The lowest offset, from the given one upwards, where `size` bytes are free.
  Bytes lowest_free(Bytes from, Bytes size) const;

 private:
  struct Range {
    Bytes begin;
    Bytes end;
  };
  std::vector<Range> ranges_;
};

// A binary tree over the moments. A span is covered by O(log moments) nodes, and what is taken during the span is recorded in
// these nodes and in their ancestors.
class Occupancy {
 public:
  explicit Occupancy(std::int32_t moments)
      : leaves_(static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(moments)))),
        nodes_(2 * static_cast<std::size_t>(leaves_)) {}

  // The lowest offset at which `size` bytes are free during the whole span. As long as all the ranges taken begin and end on
  // multiples of the alignment, so does the answer.
  Bytes lowest_free(Span span, Bytes size);

  void take(Span span, Bytes begin, Bytes end);

 private:
  struct Node {
    AddressSet all_the_time;  // taken during all the moments of this node
    AddressSet some_time;     // taken at some moment of this node
  };

  // Calls inside(node) for each node of the cover of the span and above(node) for each of their ancestors. Nodes are numbered as
  // in a heap: the root is 1, the children of n are 2n and 2n + 1.
  template <typename Inside, typename Above>
  void cover(std::size_t node, Span here, Span span, const Inside& inside, const Above& above) {
    if (span.contains(here)) return inside(nodes_[node]);
    const std::int32_t middle = here.begin + (here.end - here.begin) / 2;
    if (span.begin < middle) cover(2 * node, Span{here.begin, middle}, span, inside, above);
    if (middle < span.end) cover(2 * node + 1, Span{middle, here.end}, span, inside, above);
    above(nodes_[node]);
  }

  std::int32_t leaves_;
  std::vector<Node> nodes_;
  std::vector<const AddressSet*> in_the_way_;  // kept between calls for its storage
};

}  // namespace snug::placement
