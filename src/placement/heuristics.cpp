#include "placement/heuristics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "placement/occupancy.h"

namespace snug::placement {
namespace {

// Smaller keys come first in an order. Doubles, because size times lifetime does not fit into 64 bits.
using Key = std::array<double, 3>;

template <typename KeyOfItem>
Order order_by(const Problem& problem, const KeyOfItem& key_of_item) {
  std::vector<Key> keys(problem.items.size());
  Order order;
  order.reserve(problem.items.size());
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    if (problem.items[i].size.count() == 0) continue;
    order.push_back(static_cast<std::int32_t>(i));
    keys[i] = key_of_item(i);
  }
  // Stable, so that equal items keep their order and the result is the same with every library.
  std::ranges::stable_sort(order, {}, [&](std::int32_t item) { return keys[static_cast<std::size_t>(item)]; });
  return order;
}

double size_of(const Problem& problem, std::size_t item) { return static_cast<double>(problem.items[item].size.count()); }

double length_of(const Timeline& timeline, std::size_t item) { return timeline.spans[item].end - timeline.spans[item].begin; }

double area_of(const Problem& problem, const Timeline& timeline, std::size_t item) {
  return size_of(problem, item) * length_of(timeline, item);
}

// The most bytes alive at one moment of a span, in constant time for each span.
class Contention {
 public:
  Contention(const Problem& problem, const Timeline& timeline) {
    std::vector<double> change(static_cast<std::size_t>(timeline.moments) + 1);
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      const double size = static_cast<double>(round_up(problem.items[i].size, problem.alignment).count());
      change[static_cast<std::size_t>(timeline.spans[i].begin)] += size;
      change[static_cast<std::size_t>(timeline.spans[i].end)] -= size;
    }
    change.pop_back();
    for (std::size_t m = 1; m < change.size(); ++m) change[m] += change[m - 1];
    most_.push_back(std::move(change));
    for (std::size_t width = 2; width <= most_[0].size(); width *= 2) {
      const std::vector<double>& half = most_.back();
      std::vector<double> whole(most_[0].size() - width + 1);
      for (std::size_t m = 0; m < whole.size(); ++m) whole[m] = std::max(half[m], half[m + width / 2]);
      most_.push_back(std::move(whole));
    }
  }

  double during(Span span) const {
    const auto length = static_cast<std::size_t>(span.end - span.begin);
    const auto level = static_cast<std::size_t>(std::bit_width(length)) - 1;
    const std::vector<double>& most = most_[level];
    return std::max(most[static_cast<std::size_t>(span.begin)],
                    most[static_cast<std::size_t>(span.end) - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<double>> most_;  // most_[k][m]: during the 2^k moments from m on
};

// What is alive at the peak first: only there is no room to lose. Among these the longest-lived lie at the bottom, so that
// short-lived items above them share one connected space.
Order by_contention_then_length(const Problem& problem, const Timeline& timeline) {
  const Contention contention(problem, timeline);
  return order_by(problem, [&](std::size_t i) {
    return Key{-contention.during(timeline.spans[i]), -length_of(timeline, i), -size_of(problem, i)};
  });
}

Order by_contention_then_area(const Problem& problem, const Timeline& timeline) {
  const Contention contention(problem, timeline);
  return order_by(problem, [&](std::size_t i) {
    return Key{-contention.during(timeline.spans[i]), -area_of(problem, timeline, i), -size_of(problem, i)};
  });
}

Order by_size(const Problem& problem, const Timeline& timeline) {
  return order_by(problem, [&](std::size_t i) { return Key{-size_of(problem, i), -length_of(timeline, i), 0}; });
}

Order by_length(const Problem& problem, const Timeline& timeline) {
  return order_by(problem, [&](std::size_t i) { return Key{-length_of(timeline, i), -size_of(problem, i), 0}; });
}

Order by_area(const Problem& problem, const Timeline& timeline) {
  return order_by(problem, [&](std::size_t i) { return Key{-area_of(problem, timeline, i), -size_of(problem, i), 0}; });
}

// If any two lifetimes are nested or disjoint, this leaves no hole: each item lies on those whose lifetimes contain its own.
Order as_stack(const Problem& problem, const Timeline& timeline) {
  return order_by(problem, [&](std::size_t i) {
    return Key{static_cast<double>(timeline.spans[i].begin), -static_cast<double>(timeline.spans[i].end), -size_of(problem, i)};
  });
}

// The same with time reversed: for programs whose lifetimes nest better in backward than in forward.
Order as_stack_from_the_end(const Problem& problem, const Timeline& timeline) {
  return order_by(problem, [&](std::size_t i) {
    return Key{-static_cast<double>(timeline.spans[i].end), static_cast<double>(timeline.spans[i].begin), -size_of(problem, i)};
  });
}

constexpr std::array<Heuristic, 7> kHeuristics{{{"contention, length", by_contention_then_length},
                                                {"contention, area", by_contention_then_area},
                                                {"size", by_size},
                                                {"length", by_length},
                                                {"area", by_area},
                                                {"stack", as_stack},
                                                {"stack from the end", as_stack_from_the_end}}};

}  // namespace

Placement place_in_order(const Problem& problem, const Timeline& timeline, const Order& order) {
  Placement placement{.offsets = std::vector<Bytes>(problem.items.size()), .height = Bytes(0)};
  Occupancy occupancy(timeline.moments);
  for (const std::int32_t number : order) {
    const auto item = static_cast<std::size_t>(number);
    const Bytes size = problem.items[item].size;
    const Bytes rounded = round_up(size, problem.alignment);
    const Bytes offset = occupancy.lowest_free(timeline.spans[item], rounded);
    occupancy.take(timeline.spans[item], offset, offset + rounded);
    placement.offsets[item] = offset;
    placement.height = std::max(placement.height, offset + size);
  }
  return placement;
}

std::span<const Heuristic> heuristics() { return kHeuristics; }

}  // namespace snug::placement
