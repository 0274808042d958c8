// Keeps what a loss judges, its scores: they become a version of a state, so that their bytes outlive the section. No op, no
// copy, and nothing new for the runtime.
//
//     %logits = linear(%x, w@0, b@0)                              ->      scores@1 = linear(%x, w@0, b@0)
//     %loss = softmax_cross_entropy(%logits, labels@0, ...)               %loss = softmax_cross_entropy(scores@1, labels@0, ...)
#pragma once

#include <unordered_set>

#include "ir/program.h"

namespace snug {

// `loss`: a node of the section whose op has scores (LossFacts::has_scores).
void keep_scores(Program& program, Section& section, NodeId loss);
// The state `scores`, of this type, which nothing writes yet.
void add_scores(Program& program, const Type& type);

// Of a program of steps, its evaluation alone, without its loss: it only computes the scores, and is the section `decode`. A loss
// that makes its scores itself, a few rows at a time, leaves the op that makes them at once (LossFacts::makes_scores). Labels go
// with it. UserError when the loss judges no scores. Runs before the memory methods.
//
//     metrics@1 = linear_cross_entropy(%x, w@0, labels@0)         ->      scores@1 = linear(%x, w@0)
Program scores_only(Program program);

// Removes the states that no section reads or writes, except those of `kept` roles.
void remove_unused_states(Program& program, const std::unordered_set<Role>& kept);

}  // namespace snug
