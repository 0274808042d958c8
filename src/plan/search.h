// The search for plans of one form of a model: microbatches, checkpointing, compression, the update in backward, less workspace.
// plan/forms.h has the forms.
#pragma once

#include "plan/frontier.h"

namespace snug {

Frontier search_frontier(const FitRequest& request, const Backend& backend);

// The fastest that fits the budget, or the smallest when none does.
PlacedPoint search_fastest_within(const FitRequest& request, const Backend& backend);

// A lower bound on the bytes of every plan of the request, found without a search.
Bytes lower_bound_of(const FitRequest& request, const Backend& backend);

}  // namespace snug
