#include "placement/search.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "placement/branch_and_bound.h"
#include "placement/heuristics.h"
#include "placement/improve.h"
#include "placement/timeline.h"
#include "placement/validate.h"

namespace snug::placement {
namespace {

// Rounds without a gain before another start is tried: on training programs a gain comes within twenty.
constexpr int kPatience = 50;

// Problems with more items than this need only come within this share of the bound, and are improved in fewer rounds, since a
// round takes long.
constexpr std::size_t kManyItems = 4'000;
constexpr std::int64_t kLargeShare = 200;
constexpr std::int64_t kMostRoundsIfLarge = 5;

bool is_large(const Problem& problem) { return problem.items.size() > kManyItems; }

struct Start {
  Attempt attempt;
  std::string_view heuristic;
};

// Lowest first; ends with the first that meets the target.
std::vector<Start> try_heuristics(const Problem& problem, const Timeline& timeline, Bytes target) {
  std::vector<Start> starts;
  for (const Heuristic& heuristic : heuristics()) {
    Order order = heuristic.order(problem, timeline);
    Placement placement = place_in_order(problem, timeline, order);
    const bool met = placement.height <= target;
    starts.push_back({Attempt{std::move(order), std::move(placement)}, heuristic.name});
    if (met) break;
  }
  std::ranges::stable_sort(starts, {}, [](const Start& start) { return start.attempt.placement.height; });
  return starts;
}

void search_by_improvement(const Problem& problem, const Timeline& timeline, std::vector<Start> starts, Bytes target,
                           const SearchLimits& limits, Result& result) {
  const auto items = static_cast<std::int64_t>(problem.items.size());
  const std::int64_t most_nodes =
      is_large(problem) ? std::min(limits.improvement_nodes, kMostRoundsIfLarge * items) : limits.improvement_nodes;
  std::int64_t nodes_left = most_nodes;
  for (Start& start : starts) {
    if (result.placement.height <= target) break;
    Placement improved = improve(problem, timeline, std::move(start.attempt), target, kPatience, nodes_left);
    if (improved.height >= result.placement.height) continue;
    result.placement = std::move(improved);
    result.method = fmt::format("improved {}", start.heuristic);
  }
  result.nodes += most_nodes - nodes_left;
}

void search_exactly(const Problem& problem, const Timeline& timeline, const SearchLimits& limits, Result& result) {
  std::int64_t nodes_left = limits.exact_nodes;
  std::optional<Placement> lower = branch_and_bound(problem, timeline, result.bound, result.placement.height, nodes_left);
  result.nodes += limits.exact_nodes - nodes_left;
  result.is_optimal = nodes_left > 0;
  if (!lower) return;
  result.placement = std::move(*lower);
  result.method = "branch and bound";
}

}  // namespace

Result place(const Problem& problem, const SearchLimits& limits) {
  check_problem(problem);
  Result result;
  result.bound = lower_bound(problem);
  const Timeline timeline = make_timeline(problem);
  const bool is_small = problem.items.size() <= limits.exact_items;
  const Bytes target =
      is_small ? result.bound
               : result.bound + problem.alignment - Bytes(1) + Bytes(is_large(problem) ? result.bound.count() / kLargeShare : 0);

  std::vector<Start> starts = try_heuristics(problem, timeline, target);
  result.placement = starts.front().attempt.placement;
  result.method = starts.front().heuristic;
  if (result.placement.height > target) search_by_improvement(problem, timeline, std::move(starts), target, limits, result);
  if (result.placement.height > target && is_small) search_exactly(problem, timeline, limits, result);
  result.is_optimal = result.is_optimal || result.placement.height == result.bound;

  const std::optional<std::string> violation = find_violation(problem, result.placement);
  SNUG_CHECK(!violation, "placement by {} is wrong: {}", result.method, *violation);
  return result;
}

}  // namespace snug::placement
