#include "placement/problem.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>

#include "base/error.h"

namespace snug::placement {
namespace {

struct Event {
  std::int32_t step;
  std::int32_t item;
  bool begins;
};

// At the same step what ends comes before what begins: lifetimes are half-open.
std::vector<Event> events_in_time_order(const Problem& problem) {
  std::vector<Event> events;
  events.reserve(2 * problem.items.size());
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    events.push_back({problem.items[i].begin, static_cast<std::int32_t>(i), true});
    events.push_back({problem.items[i].end, static_cast<std::int32_t>(i), false});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.step != b.step ? a.step < b.step : a.begins < b.begins; });
  return events;
}

}  // namespace

void check_problem(const Problem& problem) {
  SNUG_CHECK(problem.alignment.count() >= 1, "placement: an alignment of {} bytes is impossible", problem.alignment.count());
  SNUG_CHECK(problem.items.size() <= std::numeric_limits<std::int32_t>::max(), "placement: {} items are too many",
             problem.items.size());
  std::int64_t room = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Item& item = problem.items[i];
    SNUG_CHECK(item.size.count() >= 0, "placement: item {} has a size of {} bytes", i, item.size.count());
    SNUG_CHECK(item.begin < item.end, "placement: item {} lives from step {} to step {}: no step at all", i, item.begin,
               item.end);
    // Checked before rounding, so that neither the rounding nor any sum of rounded sizes can overflow later.
    SNUG_CHECK(item.size.count() <= room - (problem.alignment.count() - 1),
               "placement: the sizes up to item {} add up beyond 64 bits", i);
    room -= round_up(item.size, problem.alignment).count();
  }
}

Bytes lower_bound(const Problem& problem) {
  check_problem(problem);
  // Computed here and not on the timeline that the heuristics use: a mistake there must not affect the bound.
  Bytes bound;
  Bytes alive;
  std::multiset<Bytes> padding_alive;
  for (const Event& event : events_in_time_order(problem)) {
    const Bytes size = problem.items[static_cast<std::size_t>(event.item)].size;
    if (size.count() == 0) continue;
    const Bytes rounded = round_up(size, problem.alignment);
    if (event.begins) {
      alive += rounded;
      padding_alive.insert(rounded - size);
      bound = std::max(bound, alive - *padding_alive.rbegin());
    } else {
      alive -= rounded;
      padding_alive.erase(padding_alive.find(rounded - size));
    }
  }
  return bound;
}

}  // namespace snug::placement
