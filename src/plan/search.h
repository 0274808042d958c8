// The search for plans of one model as it stands: microbatches, checkpointing, compression, the update in backward, less
// workspace. What else may be taken in the model's place is the frontier's business (plan/variants.h).
#pragma once

#include "plan/frontier.h"

namespace snug {

Frontier search_frontier(const FitRequest& request, const Backend& backend);

// The fastest that fits the budget, or the smallest when none does.
PlacedPoint search_fastest_within(const FitRequest& request, const Backend& backend);

// A number of bytes below which no plan of the request can be, found without a search.
Bytes least_thinkable(const FitRequest& request, const Backend& backend);

// What a point asks of the compiler, but for the model that it is of.
void apply(const FrontierPoint& point, CompileOptions& options);

}  // namespace snug
