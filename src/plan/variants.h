// What the solver may take in the place of the model as it was asked for: the same stored with fewer bits (Exactness::precision),
// or with part of its weights (Exactness::sparse). Each is searched like any other model, and what is found becomes one frontier.
#pragma once

#include <optional>
#include <vector>

#include "plan/frontier.h"

namespace snug {

struct Variant {
  bool narrowed = false;
  std::optional<double> nonzero = {};
};

// What is allowed, in the order in which it is taken: dense, then sparser and sparser. A sparser model is another model, so a
// rung counts only where none before it fits. Within a rung, 32 and 16 bits stand side by side, and the faster that fits is
// taken.
std::vector<std::vector<Variant>> rungs(const FitRequest& request, const Backend& backend);

// The request for the variant alone.
FitRequest as_variant(const FitRequest& request, const Variant& variant);

Variant variant_of(const FrontierPoint& point);
void mark(FrontierPoint& point, const Variant& variant);
Frontier marked(Frontier frontier, const Variant& variant);

// What no point of either beats.
Frontier merged(Frontier one, const Frontier& other);
// The one, and below all of it the other.
Frontier continued(Frontier one, const Frontier& below);

// Of two plans the one that fits the budget; the faster of two that do, ties to less memory, then to the first; the smaller of
// two that do not.
PlacedPoint better_of(PlacedPoint one, PlacedPoint other, Bytes budget);

}  // namespace snug
