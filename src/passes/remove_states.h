// Takes states out of a program: a piece of passes that do without accumulators.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/program.h"

namespace snug {

// From the list of states and from every section's values; nodes whose first output they are go too. Nothing else may read them.
// Returns where each state is now; none: it is gone.
std::vector<StateId> remove_states(Program& program, const std::unordered_set<StateId>& removed);

}  // namespace snug
