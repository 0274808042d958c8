// Graph -> Program: forward and explicit backward of one microbatch, the update, initial values and evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace snug {

struct SgdOptions {
  double momentum = 0.9;
  double weight_decay = 5e-4;
  bool nesterov = true;
  // 8: momentum is kept in 8 bits an element (ops/sgd_quantised.cpp), but for small parameters; 32: as the parameter.
  int momentum_bits = 32;
  // Above 0: all gradients together are cut down to a length. The number itself is data (Scalars::clip_norm); here it only says
  // that the program clips.
  double clip_norm = 0;
  // The update finds out whether all gradients are finite, and skips by itself where one is not: for a loss scale that follows
  // the gradients.
  bool finds_overflow = false;
  // Parameters and momenta of 16 bits are rounded by chance after each update, the nearer number the likelier, not to nearest.
  bool stochastic_rounding = false;
};

struct LowerOptions {
  std::int64_t batch = 0;  // examples a step; 0: the graph's own
  SgdOptions sgd = {};
  std::vector<int> recipes = {};  // which gradient recipe each forward node takes; empty: the first of each
};

// Sections:
//   init    initial weights, optimizer state and accumulators cleared
//   micro   forward and backward; parameter gradients are added to <parameter>.grad
//   update  SGD for every parameter that got a gradient; clears the accumulators. With clipping, or when overflows are to be
//           found, the sums of the gradients' squares come first, one node a gradient, and the factor that every sgd node then
//           reads; both stay in the state gradient_norm
//   rewire  where the pattern of sparse weights moves: small values go, as many others come, momentum is cleared
//   eval    forward alone with the evaluation substitutes
// Frozen parameters, and those the loss does not depend on, get no gradient and no momentum. A value read twice gets the sum of
// its readers' gradients through `add` nodes; passes turn these into accumulation where a kernel can.
Program lower(const Graph& graph, const LowerOptions& options);

}  // namespace snug
