// The forms of a model that the solver may take where none was given: in 32 bits or in 16 (Exactness::precision), with all of its
// weights or with some (Exactness::sparse). Each is searched like any other model, and what is found becomes one frontier.
#pragma once

#include <vector>

#include "plan/frontier.h"

namespace snug {

// The request once for every form that is allowed, with the form as given, in the order in which they are taken: dense, then
// sparser and sparser. A sparser model is another model, so a rung counts only where none before it fits. Within a rung, 32 and
// 16 bits stand side by side, and the faster that fits is taken.
std::vector<std::vector<FitRequest>> rungs(const FitRequest& request, const Backend& backend);

// What no point of either beats.
Frontier merged(Frontier one, const Frontier& other);
// The one, and below all of it the other.
Frontier continued(Frontier one, const Frontier& below);

// Of two plans the one that fits the budget; the faster of two that do, ties to less memory, then to the first; the smaller of
// two that do not.
PlacedPoint better_of(PlacedPoint one, PlacedPoint other, Bytes budget);

}  // namespace snug
