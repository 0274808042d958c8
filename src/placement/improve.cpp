#include "placement/improve.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace snug::placement {
namespace {

// Everything that ends above the limit moves to half its place in the order; the rest keeps its order.
void move_forward(const Problem& problem, Attempt& attempt, Bytes limit) {
  std::vector<std::pair<std::size_t, std::int32_t>> places;
  places.reserve(attempt.order.size());
  for (std::size_t place = 0; place < attempt.order.size(); ++place) {
    const auto item = static_cast<std::size_t>(attempt.order[place]);
    const bool too_high = attempt.placement.offsets[item] + problem.items[item].size > limit;
    // In half places. Two more for those that stay: a moved item comes before the one whose place it takes.
    places.emplace_back(too_high ? place : 2 * place + 2, attempt.order[place]);
  }
  std::ranges::stable_sort(places, {}, &std::pair<std::size_t, std::int32_t>::first);
  std::ranges::transform(places, attempt.order.begin(), &std::pair<std::size_t, std::int32_t>::second);
}

}  // namespace

Placement improve(const Problem& problem, const Timeline& timeline, Attempt start, Bytes target, int patience,
                  std::int64_t& nodes_left) {
  Placement best = start.placement;
  Attempt current = std::move(start);
  const auto nodes_per_round = static_cast<std::int64_t>(current.order.size());
  int rounds_without_gain = 0;
  for (int round = 0; best.height > target && rounds_without_gain < patience && nodes_left >= nodes_per_round; ++round) {
    // Alternately moves all items above the target and only the topmost: the first is faster, the second disturbs less.
    move_forward(problem, current, round % 2 == 0 ? target : current.placement.height - Bytes(1));
    current.placement = place_in_order(problem, timeline, current.order);
    nodes_left -= nodes_per_round;
    ++rounds_without_gain;
    if (current.placement.height < best.height) {
      best = current.placement;
      rounds_without_gain = 0;
    }
  }
  return best;
}

}  // namespace snug::placement
