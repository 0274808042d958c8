#include "passes/checkpoint/regions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/error.h"

namespace snug {

std::size_t Regions::add(std::size_t around) {
  parent.push_back(around);
  return parent.size() - 1;
}

std::size_t Regions::common(std::size_t a, std::size_t b) const {
  while (a != b) (a > b ? a : b) = parent[std::max(a, b)];
  return a;
}

namespace {

class RegionFinder {
 public:
  explicit RegionFinder(const std::vector<Link>& links) : links_(links), kept_before_{0} {
    for (const Link& link : links) kept_before_.push_back(kept_before_.back() + link.kept.count());
    regions_.of_node.assign(links.empty() ? 0 : links.back().end, 0);
  }

  // Each segment but the last is a region in the forward pass.
  Regions segments(const std::vector<std::size_t>& starts) {
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) assign(regions_.add(0), starts[i], starts[i + 1]);
    return std::move(regions_);
  }

  // Groups of blocks, and in each group its blocks.
  Regions nested_segments(const std::vector<std::size_t>& blocks, std::size_t blocks_a_group) {
    for (std::size_t first = 0; first < blocks.size(); first += blocks_a_group) {
      const std::size_t end = std::min(first + blocks_a_group, blocks.size());
      const std::size_t group = end == blocks.size() ? 0 : regions_.add(0);
      for (std::size_t i = first; i < end; ++i) {
        const std::size_t block = i + 1 == end ? group : regions_.add(group);
        assign(block, blocks[i], i + 1 == blocks.size() ? links_.size() : blocks[i + 1]);
      }
    }
    return std::move(regions_);
  }

  Regions halves() {
    halve(0, 0, links_.size());
    return std::move(regions_);
  }

  std::vector<std::size_t> every(std::int64_t count) const {
    std::vector<std::size_t> starts;
    const std::size_t step = std::min(static_cast<std::size_t>(count), std::max<std::size_t>(1, links_.size()));
    for (std::size_t i = 0; i < links_.size(); i += step) starts.push_back(i);
    return starts;
  }

  // With s segments, s values are kept and one segment's share of what backward reads is recomputed at a time: fewest bytes at s
  // = sqrt(all that backward reads / a kept value). For n equal links that is a multiple of sqrt(n).
  std::vector<std::size_t> equal_segments() const {
    const std::int64_t total = kept_before_.back();
    std::vector<std::size_t> starts{0};
    if (links_.size() < 2 || total == 0) return starts;
    double carried = 0;
    for (const Link& link : links_) carried += static_cast<double>(link.carried.count()) / static_cast<double>(links_.size());
    const double wanted = std::sqrt(static_cast<double>(total) / std::max(carried, 1.0));
    const auto count = static_cast<std::int64_t>(std::clamp(std::round(wanted), 1.0, static_cast<double>(links_.size())));
    for (std::int64_t k = 1; k < count; ++k) {
      const std::int64_t target = total / count * k;
      const std::size_t start = smallest_cut_near(target, total / (4 * count), starts.back() + 1);
      if (start < links_.size()) starts.push_back(start);
    }
    return starts;
  }

  // Chen et al.'s search: for each budget, a segment ends where what backward reads of it has reached the budget; of the
  // segmentations the one with the smallest peak. Budgets from the largest link's bytes to half of all.
  std::vector<std::size_t> budgeted_segments() const {
    constexpr int kBudgets = 64;
    std::int64_t largest = 1;
    for (const Link& link : links_) largest = std::max(largest, link.kept.count());
    const double most = std::max(static_cast<double>(largest), static_cast<double>(kept_before_.back()));
    std::vector<std::size_t> best{0};
    std::int64_t least = peak_of(best);
    for (int i = 0; i < kBudgets; ++i) {
      const double budget = static_cast<double>(largest) * std::pow(most / static_cast<double>(largest), double(i) / kBudgets);
      std::vector<std::size_t> starts{0};
      for (std::size_t l = 1; l < links_.size(); ++l) {
        if (static_cast<double>(kept_before_[l + 1] - kept_before_[starts.back()]) > budget) starts.push_back(l);
      }
      const std::int64_t peak = peak_of(starts);
      if (peak < least) {
        least = peak;
        best = std::move(starts);
      }
    }
    return best;
  }

  // The first link of every residual block; what comes before the first or after the last is part of it.
  std::vector<std::size_t> residual_blocks() const {
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].joins_branches) starts.push_back(starts.empty() ? 0 : i);
    }
    return starts;
  }

 private:
  // Most bytes that the values at the cuts take together with those of one segment that backward reads.
  std::int64_t peak_of(const std::vector<std::size_t>& starts) const {
    std::int64_t cuts = 0;
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (i > 0) cuts += links_[starts[i] - 1].carried.count();
      const std::size_t end = i + 1 == starts.size() ? links_.size() : starts[i + 1];
      peak = std::max(peak, cuts + kept_before_[end] - kept_before_[starts[i]]);
    }
    return peak;
  }

  void assign(std::size_t region, std::size_t first_link, std::size_t end_link) {
    if (first_link == end_link) return;
    std::fill(regions_.of_node.begin() + static_cast<std::ptrdiff_t>(links_[first_link].begin),
              regions_.of_node.begin() + static_cast<std::ptrdiff_t>(links_[end_link - 1].end), region);
  }

  // The link, from `least` on, to begin a segment with: of those near enough to the target the one that keeps the smallest value,
  // or the nearest where none is near enough. links_.size() when no link is left.
  std::size_t smallest_cut_near(std::int64_t target, std::int64_t slack, std::size_t least) const {
    std::size_t best = links_.size();
    const auto rank = [&](std::size_t i) {
      const std::int64_t distance = std::abs(kept_before_[i] - target);
      const bool near = distance <= slack;
      return std::pair(near ? links_[i - 1].carried.count() - std::numeric_limits<std::int64_t>::max() : distance, distance);
    };
    for (std::size_t i = least; i < links_.size(); ++i) {
      if (best == links_.size() || rank(i) < rank(best)) best = i;
    }
    return best;
  }

  void halve(std::size_t region, std::size_t first, std::size_t end) {
    const std::int64_t from = kept_before_[first];
    const std::int64_t to = kept_before_[end];
    if (end - first < 2 || from == to) return assign(region, first, end);
    // Half of the bytes on either side; of several equal places, the one in the middle keeps the halving shallow.
    const auto rank = [&](std::size_t i) {
      return std::pair(std::abs(2 * kept_before_[i] - from - to), std::max(i - first, end - i));
    };
    std::size_t middle = first + 1;
    for (std::size_t i = first + 2; i < end; ++i) {
      if (rank(i) < rank(middle)) middle = i;
    }
    halve(regions_.add(region), first, middle);
    halve(region, middle, end);
  }

  const std::vector<Link>& links_;
  std::vector<std::int64_t> kept_before_;  // bytes that backward reads of all links before this one
  Regions regions_;
};

}  // namespace

Regions find_regions(const CheckpointStrategy& strategy, const std::vector<Link>& links, std::string_view program_name) {
  using Kind = CheckpointStrategy::Kind;
  RegionFinder finder(links);
  switch (strategy.kind) {
    case Kind::none:
    case Kind::no_bn:
    case Kind::optimal:  // makes its own regions
    case Kind::greedy:   // has none
      break;
    case Kind::chen:
      return finder.segments(finder.budgeted_segments());
    case Kind::every:
      return finder.segments(finder.every(strategy.every));
    case Kind::sqrt:
      return finder.segments(finder.equal_segments());
    case Kind::log:
      return finder.halves();
    case Kind::residual:
    case Kind::residual_star: {
      const std::vector<std::size_t> blocks = finder.residual_blocks();
      if (blocks.empty()) {
        throw_user_error("'{}' has no residual blocks, so checkpoint '{}' is not possible; use sqrt, log or every-M",
                         program_name, to_string(strategy));
      }
      const auto group = static_cast<std::size_t>(std::min(strategy.every, static_cast<std::int64_t>(blocks.size())));
      if (strategy.kind == Kind::residual_star) return finder.nested_segments(blocks, group);
      std::vector<std::size_t> starts;
      for (std::size_t i = 0; i < blocks.size(); i += group) starts.push_back(blocks[i]);
      return finder.segments(starts);
    }
  }
  return finder.segments({0});
}

}  // namespace snug
