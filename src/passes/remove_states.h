// Removes states from a program: used by passes that need no accumulators.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/program.h"

namespace snug {

// Removes them from the list of states and from every section's values, with the nodes whose first output they are. Nothing else
// may read them. Returns each state's new id, or none for a removed one.
std::vector<StateId> remove_states(Program& program, const std::unordered_set<StateId>& removed);

}  // namespace snug
