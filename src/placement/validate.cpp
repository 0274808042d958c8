#include "placement/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>

namespace snug::placement {
namespace {

using Violation = std::optional<std::string>;

// Without these checks the sweep below would be meaningless.
Violation find_senseless_item(const Problem& problem) {
  if (problem.alignment.count() < 1) return fmt::format("the alignment is {}", problem.alignment.count());
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Item& item = problem.items[i];
    if (item.size.count() < 0) return fmt::format("item {} has a size of {} bytes", i, item.size.count());
    if (item.begin >= item.end) return fmt::format("item {} lives from step {} to {}: no step at all", i, item.begin, item.end);
  }
  return std::nullopt;
}

Violation find_bad_offset(const Problem& problem, const Placement& placement) {
  if (placement.offsets.size() != problem.items.size()) {
    return fmt::format("{} offsets for {} items", placement.offsets.size(), problem.items.size());
  }
  if (placement.height.count() < 0) return fmt::format("the height is {}", placement.height.count());
  Bytes top;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Bytes offset = placement.offsets[i];
    const Bytes size = problem.items[i].size;
    if (offset.count() < 0) return fmt::format("item {} is at the negative offset {}", i, offset.count());
    if (offset.count() % problem.alignment.count() != 0) {
      return fmt::format("item {} is at offset {}, which is not a multiple of {}", i, offset.count(), problem.alignment.count());
    }
    // Subtracted from the height, not added to the offset: a damaged offset near 2^63 must not overflow.
    if (offset > placement.height - size) {
      return fmt::format("item {} of {} bytes at offset {} ends above the height {}", i, size.count(), offset.count(),
                         placement.height.count());
    }
    top = std::max(top, offset + size);
  }
  if (top == placement.height) return std::nullopt;
  return fmt::format("the height is {} but the highest item ends at {}", placement.height.count(), top.count());
}

// Sweeps over time with the live items in order of address. As long as nothing overlaps, a new item can only overlap the
// neighbor below it or the neighbor above it.
Violation find_overlap(const Problem& problem, const Placement& placement) {
  std::vector<std::size_t> by_begin;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    if (problem.items[i].size.count() > 0) by_begin.push_back(i);
  }
  std::vector<std::size_t> by_end = by_begin;
  std::ranges::sort(by_begin, {}, [&](std::size_t i) { return problem.items[i].begin; });
  std::ranges::sort(by_end, {}, [&](std::size_t i) { return problem.items[i].end; });

  const auto end_of = [&](std::size_t i) { return placement.offsets[i] + problem.items[i].size; };
  const auto overlap = [&](std::size_t earlier, std::size_t item) {
    return fmt::format("items {} and {} are both alive at step {} and overlap: bytes {} to {} and bytes {} to {}", earlier, item,
                       problem.items[item].begin, placement.offsets[earlier].count(), end_of(earlier).count(),
                       placement.offsets[item].count(), end_of(item).count());
  };

  std::map<Bytes, std::size_t> alive;  // offset -> item
  auto next_to_end = by_end.begin();
  for (const std::size_t item : by_begin) {
    for (; problem.items[*next_to_end].end <= problem.items[item].begin; ++next_to_end) {
      alive.erase(placement.offsets[*next_to_end]);
    }
    const Bytes offset = placement.offsets[item];
    const auto above = alive.lower_bound(offset);
    if (above != alive.end() && above->first < end_of(item)) return overlap(above->second, item);
    if (above != alive.begin()) {
      const std::size_t below = std::prev(above)->second;
      if (end_of(below) > offset) return overlap(below, item);
    }
    alive.emplace_hint(above, offset, item);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_violation(const Problem& problem, const Placement& placement) {
  if (Violation violation = find_senseless_item(problem)) return violation;
  if (Violation violation = find_bad_offset(problem, placement)) return violation;
  return find_overlap(problem, placement);
}

}  // namespace snug::placement
