// The plans of a sweep: which budgets, and what is trained in each.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/fit.h"

namespace snug {

struct PlannedPoint {
  Plan plan;
  double seconds = 0;  // of a step, as the solver compares plans
};

struct SweepPlans {
  PlannedPoint plain;               // the whole batch at once (or the microbatch that was asked for), nothing recomputed
  std::vector<PlannedPoint> plans;  // by falling bytes and rising predicted time
  struct Budget {
    Bytes bytes;
    std::size_t plan;
  };
  std::vector<Budget> budgets;  // by falling bytes
  Frontier frontier;            // that they were taken from
};

// For each of `points` budgets the fastest plan that fits. They reach from the plain plan's bytes down to the smallest possible,
// or, with `between`, from its second down to its first. DoesNotFit when the first is less than the smallest possible.
SweepPlans plan_sweep(const FitRequest& request, const Backend& backend, const std::optional<std::pair<Bytes, Bytes>>& between,
                      std::size_t points);

}  // namespace snug
