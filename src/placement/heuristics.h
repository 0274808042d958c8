// Greedy placement: one item after the other, each at the lowest offset that is free during its life. Heuristics differ in the
// order.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace snug::placement {

// Item numbers. Items of no bytes are left out: they stay at offset 0.
using Order = std::vector<std::int32_t>;

Placement place_in_order(const Problem& problem, const Timeline& timeline, const Order& order);

struct Heuristic {
  std::string_view name;
  Order (*order)(const Problem& problem, const Timeline& timeline);
};

// Those that did best on training programs come first.
std::span<const Heuristic> heuristics();

}  // namespace snug::placement
