#include "placement/timeline.h"

#include <algorithm>
#include <cstddef>

namespace snug::placement {
namespace {

struct Event {
  std::int32_t step;
  std::int32_t item;
  bool begins;
};

}  // namespace

Timeline make_timeline(const Problem& problem) {
  std::vector<Event> events;
  events.reserve(2 * problem.items.size());
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    if (problem.items[i].size.count() == 0) continue;
    events.push_back({problem.items[i].begin, static_cast<std::int32_t>(i), true});
    events.push_back({problem.items[i].end, static_cast<std::int32_t>(i), false});
  }
  // Within a step, ends come before begins: lifetimes are half-open.
  std::ranges::sort(events,
                    [](const Event& a, const Event& b) { return a.step != b.step ? a.step < b.step : a.begins < b.begins; });

  Timeline timeline{.spans = std::vector<Span>(problem.items.size()), .moments = 0};
  bool grew = false;  // since the last moment was closed
  for (const Event& event : events) {
    Span& span = timeline.spans[static_cast<std::size_t>(event.item)];
    if (event.begins) {
      span.begin = timeline.moments;
      grew = true;
    } else {
      if (grew) ++timeline.moments;
      grew = false;
      span.end = timeline.moments;
    }
  }
  return timeline;
}

}  // namespace snug::placement
