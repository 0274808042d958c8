// The strategy `optimal`: of all ways to recompute, the one that takes least time within a limit on the section's bytes.
//
// The chain of links, measured with the backend's kernels (chain_measures.h), is solved by a dynamic programme for every number
// of bytes (analysis/chain_programme.h). The programme's figures are estimates, so its plans are then rewritten and their real
// liveness looked at: the fastest whose bytes keep the limit is taken, and single values that still have room stay after all.
// Best effort: where nothing keeps the limit, the plan with least bytes. Searches are limited by count.
#pragma once

#include "passes/pass.h"
#include "passes/recompute.h"

namespace snug {

// context.checkpoint.limit is for the transient bytes of `section`, which is program's.
Recomputation find_optimal_recomputation(const Program& program, const Section& section, const ForwardPass& forward,
                                         const PassContext& context);

}  // namespace snug
