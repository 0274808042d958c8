// The rewrite behind every checkpointing strategy: values that backward reads and that are not kept are recomputed by clones of
// the nodes that made them. checkpoint.h says what it guarantees.
#pragma once

#include <vector>

#include "ir/program.h"
#include "passes/checkpoint/forward_chain.h"
#include "passes/checkpoint/regions.h"

namespace snug {

// What is kept and what is recomputed, for one forward pass.
struct Recomputation {
  Regions regions;
  // By forward node: if it normalizes, does something pointwise to what was normalized, or makes its result cheaply from what
  // backward reads anyway (an activation function that keeps its input), that result is recomputed where backward reads it.
  std::vector<bool> renews;
  // By forward node, or empty: exceptions. What a node of `stays` makes is kept from the forward pass on; what one of `drops`
  // makes is recomputed where backward reads it, from whatever exists then.
  std::vector<bool> stays = {};
  std::vector<bool> drops = {};
};

// Returns the forward nodes that run again, in order. Nodes may have kernels already: a clone has its original's, and its own
// workspace.
std::vector<std::size_t> recompute(Section& section, const ForwardPass& forward, const Recomputation& what);

}  // namespace snug
