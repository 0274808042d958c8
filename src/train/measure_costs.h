// How long the nodes of a step take, measured in the plan: in its order, at its offsets, with the
// values of a real step.
#pragma once

#include <span>
#include <vector>

#include "analysis/cost.h"
#include "train/session.h"

namespace snug::train {

// Runs steps of one microbatch, in turn as a whole and node by node, and takes medians. Timed one by one, nodes take longer or
// shorter than in a step at full speed (on a GPU each one is synchronized); the difference is spread over them, so that the
// results add up to the step. One entry for each kind of node. `examples`: at most a microbatch of them.
std::vector<NodeCost> measure_costs(Session& session, const Examples& examples, int repeats = 5);

// Changes each node's seconds by the same amount, but to no less than a tenth, so that they sum to `whole`; what is then still
// missing is distributed in proportion.
void spread_difference(std::span<double> seconds, double whole);

}  // namespace snug::train
