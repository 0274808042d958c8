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

// Removes the states that no section reads or writes, except those of `kept` roles.
void remove_unused_states(Program& program, const std::unordered_set<Role>& kept);

}  // namespace snug
