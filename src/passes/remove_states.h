// Takes states out of a program: a piece of passes that do without accumulators.
#pragma once

#include <unordered_set>

#include "ir/program.h"

namespace snug {

// From the list of states and from every section's values; nodes whose first output they are go too. Nothing else may read them.
void remove_states(Program& program, const std::unordered_set<StateId>& removed);

// The section of that kind, or nullptr.
Section* find_section(Program& program, SectionKind kind);

}  // namespace snug
