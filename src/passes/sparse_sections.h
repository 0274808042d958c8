// Adds what sparse weights need beside forward and backward: in the section `init` their pattern and values and, where the
// pattern moves, the section `rewire`, which lets small values go, as many others come, and clears what the update rule kept of
// the old ones.
#pragma once

#include "ir/graph.h"

namespace snug {

Program add_sparse_sections(Program program, const SparseStore& sparse);

}  // namespace snug
