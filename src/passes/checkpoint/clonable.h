// Which nodes may run a second time (SectionEditor::clone). Exact: a clone has the op, constants, random keys and operands of its
// original, and so gives the same bits.
#pragma once

#include <vector>

#include "ir/program.h"

namespace snug {

// By node of [0, end): whether it may run again anywhere later in the section. Not so where running twice would count something
// twice, where it writes a state, and where it reads a state that the section writes later.
std::vector<bool> find_clonable_nodes(const Section& section, std::size_t end);

}  // namespace snug
