// Graph -> Program: forward and explicit backward of one microbatch, initial values and evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace snug {

struct LowerOptions {
  std::int64_t batch = 0;         // examples a step; 0: the graph's own
  std::vector<int> recipes = {};  // which gradient recipe each forward node takes; empty: the first of each
};

// Sections:
//   init    initial weights, accumulators cleared
//   micro   forward and backward; parameter gradients are added to <parameter>.grad
//   eval    forward alone with the evaluation substitutes
// Frozen parameters, and those the loss does not depend on, get no gradient. A value read twice gets the sum of
// its readers' gradients through `add` nodes; passes turn these into accumulation where a kernel can.
Program lower(const Graph& graph, const LowerOptions& options);

}  // namespace snug
