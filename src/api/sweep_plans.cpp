#include "api/sweep_plans.h"

#include <algorithm>
#include <cmath>

#include "api/sweep.h"
#include "base/error.h"
#include "frontend/zoo.h"

namespace snug {

namespace {

PlannedPoint plain_plan(const FitRequest& request, const Backend& backend) {
  CompileOptions options = request.options;
  options.checkpoint = {};
  options.workspace_limit.reset();
  return {.plan = compile(request.model(request.microbatch.value_or(options.batch)), backend, options), .checkpoint = "none"};
}

// Every plan that some budget gets, by falling bytes: each is asked for with one byte less than the last one took. Of two, the
// smaller one that is also faster counts for both.
std::vector<PlannedPoint> plans_down_from(FitRequest request, const Backend& backend, Bytes budget) {
  std::vector<PlannedPoint> plans;
  const CostTable& costs = request.options.costs;
  while (true) {
    request.budget = budget;
    try {
      Plan plan = fit(request, backend).plan;
      budget = plan.planned_peak_bytes - Bytes(1);
      const double seconds = step_seconds(costs, plan.program);
      while (!plans.empty() && step_seconds(costs, plans.back().plan.program) >= seconds) plans.pop_back();
      plans.push_back({.plan = std::move(plan), .checkpoint = to_string(request.options.checkpoint)});
    } catch (const DoesNotFit&) {
      if (plans.empty()) throw;
      return plans;
    }
  }
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
  SweepPlans result{.plain = plain_plan(request, backend)};
  const Bytes largest = between ? between->second : result.plain.plan.planned_peak_bytes;
  std::vector<PlannedPoint> plans = plans_down_from(request, backend, largest);
  const Bytes least = plans.back().plan.planned_peak_bytes;
  if (between && between->first < least) {
    FitRequest smallest = request;
    smallest.budget = between->first;
    fit(smallest, backend);  // says what would do
  }
  for (const Bytes budget : spread_budgets(between ? between->first : least, largest, points)) {
    const auto fits =
        std::ranges::find_if(plans, [&](const PlannedPoint& point) { return point.plan.planned_peak_bytes <= budget; });
    SNUG_CHECK(fits != plans.end(), "no plan fits {} bytes", budget.count());
    result.budgets.push_back({.bytes = budget, .plan = static_cast<std::size_t>(fits - plans.begin())});
  }
  result.plans = std::move(plans);
  return result;
}

data::Description random_description(const train::Recipe& recipe) {
  const Graph graph = frontend::build_zoo_model(recipe.model, {.batch = 1, .image_size = recipe.image_size.value_or(0)});
  const auto images = std::ranges::find_if(graph.states, [](const State& state) { return state.name == "images"; });
  if (images == graph.states.end()) throw_user_error("'{}' does not take images", recipe.model);
  const Shape& shape = images->type.shape;
  // No classes of its own: the model's stay.
  return {.name = "random", .channels = shape[1], .height = shape[2], .width = shape[3]};
}

}  // namespace snug
