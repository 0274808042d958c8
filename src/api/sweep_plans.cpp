#include "api/sweep_plans.h"

#include <algorithm>
#include <cmath>

#include "api/sweep.h"
#include "base/error.h"

namespace snug {

namespace {

PlannedPoint plain_plan(const FitRequest& request, const Backend& backend) {
  FitRequest plain = request;
  plain.given.checkpoint.reset();
  plain.given.compress_bits.reset();
  plain.given.workspace_limit.reset();
  Plan plan = compile_point(plain, plain_point(plain), backend);
  const double seconds = step_seconds(request.options.costs, plan.program);
  return {.plan = std::move(plan), .seconds = seconds};
}

}  // namespace

std::vector<Bytes> spread_budgets(Bytes smallest, Bytes largest, std::size_t points) {
  std::vector<Bytes> budgets;
  const double ratio = static_cast<double>(smallest.count()) / static_cast<double>(largest.count());
  for (std::size_t i = 0; i < points; ++i) {
    const double part = points == 1 ? 0 : static_cast<double>(i) / static_cast<double>(points - 1);
    Bytes budget(std::llround(static_cast<double>(largest.count()) * std::pow(ratio, part)));
    if (i == 0) budget = largest;
    if (i > 0 && i + 1 == points) budget = smallest;
    budget = std::clamp(budget, smallest, largest);
    if (budgets.empty() || budget < budgets.back()) budgets.push_back(budget);
  }
  return budgets;
}

SweepPlans plan_sweep(const FitRequest& request, const Backend& backend, const std::optional<std::pair<Bytes, Bytes>>& between,
                      std::size_t points) {
  SweepPlans result{.plain = plain_plan(request, backend), .frontier = find_frontier(request, backend)};
  const std::vector<FrontierPoint>& frontier = result.frontier.points;
  const Bytes least = frontier.front().planned_peak_bytes;
  const Bytes smallest = between ? between->first : least;
  // What is given may be more than plain training takes, such as a strategy with a limit.
  const Bytes largest = between ? between->second : std::max(least, result.plain.plan.planned_peak_bytes);
  if (smallest < least) {
    FitRequest refused = request;
    refused.budget = smallest;
    fit(refused, backend);  // says what would do
    throw InternalError("a budget below the smallest plan was not refused");
  }
  std::optional<std::size_t> last;  // of the frontier
  for (const Bytes budget : spread_budgets(smallest, largest, points)) {
    const auto above = std::ranges::upper_bound(frontier, budget, {}, &FrontierPoint::planned_peak_bytes);
    const auto at = static_cast<std::size_t>(above - frontier.begin()) - 1;
    if (last != at) {
      result.plans.push_back({.plan = compile_point(request, frontier[at], backend), .seconds = frontier[at].seconds});
      last = at;
    }
    result.budgets.push_back({.bytes = budget, .plan = result.plans.size() - 1});
  }
  return result;
}

}  // namespace snug
