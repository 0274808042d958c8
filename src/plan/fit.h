// A plan for a budget: the fastest of the frontier that fits.
#pragma once

#include <optional>

#include "plan/frontier.h"

namespace snug {

struct Fit {
  Plan plan;
  FrontierPoint point;  // what was chosen
  // Of plain training; nothing when a smaller microbatch was asked for.
  std::optional<Bytes> plain_peak_bytes;
};

// Without a budget: the whole batch at once and nothing recomputed, except for what is given. With one: the fastest plan of the
// frontier that fits, ties to less memory. Deterministic: it depends on the request alone. DoesNotFit names the smallest
// sufficient budget, what fills it, and what would help.
Fit fit(const FitRequest& request, const Backend& backend);

}  // namespace snug
