// Which nodes of `init` still run when a file gives some of the states.
//
//   a@1 = init_normal(a@0, scalars)          a and b given: only c@1 = fill(c@0) is run
//   b@1 = init_uniform(b@0, scalars)
//   c@1 = fill(c@0)
//
// A node runs when it makes a state that is not given, or something that such a node reads. States that the section `derive`
// makes from others count as given: it runs after every load.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/program.h"

namespace snug::train {

// In order.
std::vector<std::size_t> init_nodes_without(const Program& program, std::span<const StateId> given);

}  // namespace snug::train
