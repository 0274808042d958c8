// What the nodes of a step take, measured where the plan runs them: in their order, on the plan's own bytes, with the values of a
// real step in them.
#pragma once

#include <span>
#include <vector>

#include "analysis/cost.h"
#include "train/session.h"

namespace snug::train {

// Runs steps of one microbatch, in turn as a whole and node by node, and takes medians. Timed one by one, nodes take longer or
// shorter than in a step at full speed (on a GPU each is waited for); the difference is spread over them, so that what is
// returned adds up to the step. One entry for each kind of node. `examples`: at most a microbatch of them.
std::vector<NodeCost> measure_costs(Session& session, const Examples& examples, int repeats = 5);

// Each node's seconds moved by the same amount, as far as that leaves a tenth of it, so that they sum to `whole`; what is then
// still missing is shared out in proportion.
void spread_difference(std::span<double> seconds, double whole);

}  // namespace snug::train
