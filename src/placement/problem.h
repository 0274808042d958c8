// The placement problem: values with a size and a lifetime in, byte offsets out. No tensors, no graph: only numbers.
//
//   address
//      ^   +-----+                    Two items that are alive at the same step must not share a byte.
//      |   |  B  |+-----+             A and B, A and C live together; B and C only touch in time, so C may
//      |   +-----+|  C  |             take the bytes of B.
//      |   +------+-----++
//      |   |      A      |
//      +---+-------------+--> step
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace snug::placement {

// Alive during the steps begin <= step < end. An item of no bytes is allowed; a lifetime of no steps is not: writing the value
// would overwrite its neighbors.
struct Item {
  Bytes size;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct Problem {
  std::vector<Item> items;
  Bytes alignment = kAlignment;
};

// offsets[i] belongs to items[i] and is a multiple of the alignment. The height is the end of the highest item, to the byte: it
// is not rounded up, because an arena needs no byte after its last used one.
struct Placement {
  std::vector<Bytes> offsets;
  Bytes height;
};

// InternalError unless the problem is valid: no negative size, a sum of sizes within 64 bits, lifetimes of at least one step.
void check_problem(const Problem& problem);

// No placement can be lower: the most bytes alive at one step. Each item takes its size rounded up to the alignment, since its
// upper neighbor starts on a boundary, except the one on top, which may be the one with the most padding.
Bytes lower_bound(const Problem& problem);

}  // namespace snug::placement
