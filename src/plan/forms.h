// The forms of a model that the solver may choose where none was given: in 32 bits or in 16 (Exactness::precision), with all of
// its weights or with some (Exactness::sparse). Each is searched like any other model, and the results become one frontier.
#pragma once

#include <vector>

#include "plan/frontier.h"

namespace snug {

// The request for every form that is allowed, as if that form were given, in the order of preference: dense, then sparser and
// sparser. A sparser model is a different model, so a rung is used only where none before it fits. Within a rung, 32 and 16 bits
// compete, and the faster one that fits is chosen.
std::vector<std::vector<FitRequest>> rungs(const FitRequest& request, const Backend& backend);

// The points of both that no other beats.
Frontier merged(Frontier one, const Frontier& other);
// The first, and of the second the points that are smaller than all of it.
Frontier extended_below(Frontier one, const Frontier& below);

// The plan that fits the budget; if both do, the faster (ties to
// less memory, then to the first); if neither does, the smaller.
PlacedPoint better_of(PlacedPoint one, PlacedPoint other, Bytes budget);

}  // namespace snug
