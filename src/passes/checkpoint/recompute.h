// The rewrite behind every checkpointing strategy: values that backward reads and that do not stay are made again by clones of
// the nodes that made them. checkpoint.h says what it guarantees.
#pragma once

#include <vector>

#include "ir/program.h"
#include "passes/checkpoint/forward_chain.h"
#include "passes/checkpoint/regions.h"

namespace snug {

// What stays and what is made again, for one forward pass.
struct Recomputation {
  Regions regions;
  // By forward node: if it normalizes, or does something pointwise to what was normalized, its result is made again where
  // backward reads it.
  std::vector<bool> renews;
  // By forward node, or empty: exceptions. What a node of `stays` makes is kept from the forward pass on; what one of `drops`
  // makes is made again where backward reads it, from whatever is there.
  std::vector<bool> stays = {};
  std::vector<bool> drops = {};
};

// The forward nodes that run again, in the order they do. Nodes may have kernels already: a clone has its original's, and
// workspace of its own.
std::vector<std::size_t> recompute(Section& section, const ForwardPass& forward, const Recomputation& what);

}  // namespace snug
