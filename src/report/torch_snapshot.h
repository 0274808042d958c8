// A plan in the format of PyTorch's memory snapshots, so that its viewer opens it: a pickle of
//   {"segments": [the arena], "device_traces": [[allocations and frees over a step]]}
#pragma once

#include <string>

#include "plan/plan.h"

namespace snug::report {

// States are allocated first and stay; then, node by node, buffers are allocated and freed. A buffer's stack of frames names the
// values that lie in it in turn, the last one on top.
std::string torch_snapshot(const Plan& plan);

}  // namespace snug::report
