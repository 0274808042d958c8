// The same model stored with fewer bits, where Exactness::precision is allowed: what the solver finds for both becomes one
// frontier.
#pragma once

#include <optional>

#include "plan/frontier.h"

namespace snug {

// The request for the narrower model; nothing when there is none, or it is not allowed.
std::optional<FitRequest> narrowed(const FitRequest& request);

// What no point of either beats. The points of `narrow` are marked as such.
Frontier merged(const Frontier& wide, const Frontier& narrow);

// Of two plans the one that fits the budget; the faster of two that do, ties to less memory; the smaller of two that do not.
PlacedPoint better_of(PlacedPoint wide, PlacedPoint narrow, const std::optional<Bytes>& budget);

}  // namespace snug
