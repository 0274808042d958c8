// Of a program of steps, its evaluation alone, with the scores that its loss judges kept: for weights that are trained already.
// Exact: evaluation computes what it did.
//
//   section micro ...
//   section update ...
//   section eval                                                        section eval
//     %logits = linear(%x, w@0, b@0)                              ->      scores@1 = linear(%x, w@0, b@0)
//     %loss = softmax_cross_entropy(%logits, labels@0, ...)               %loss = softmax_cross_entropy(scores@1, labels@0, ...)
//
// States that only training has (gradients, what the optimizer keeps) go with it. The scores become a version of a state, so that
// their bytes outlive the section: no op, no copy, and nothing new for the runtime. Runs before the memory methods.
#pragma once

#include "ir/program.h"

namespace snug {

// A loss that makes its scores itself, a few rows at a time, keeps none.
Program evaluate_only(Program program);

}  // namespace snug
