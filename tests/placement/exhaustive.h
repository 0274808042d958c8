// The lowest height of tiny problems by trying everything: slow, and so simple that it can be believed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "placement/problem.h"

namespace snug::placement {

inline bool alive_together(const Item& a, const Item& b) { return a.begin < b.end && b.begin < a.end; }

// Every aligned offset for every item: for five small items at most.
class EveryOffset {
 public:
  explicit EveryOffset(const Problem& problem) : problem_(problem), offsets_(problem.items.size()) {
    // Everything on top of each other always works.
    for (const Item& item : problem.items) best_ += round_up(item.size, problem.alignment);
    put_down(0, Bytes(0));
  }

  Bytes lowest_height() const { return best_; }

 private:
  void put_down(std::size_t item, Bytes height) {
    if (item == problem_.items.size()) {
      best_ = std::min(best_, height);
      return;
    }
    const Bytes size = problem_.items[item].size;
    for (Bytes offset; offset + size < best_; offset += problem_.alignment) {
      bool fits = true;
      for (std::size_t other = 0; other < item; ++other) {
        const bool apart = offset + size <= offsets_[other] || offsets_[other] + problem_.items[other].size <= offset;
        fits = fits && (apart || !alive_together(problem_.items[item], problem_.items[other]));
      }
      if (!fits) continue;
      offsets_[item] = offset;
      put_down(item + 1, std::max(height, offset + size));
    }
  }

  const Problem& problem_;
  std::vector<Bytes> offsets_;
  Bytes best_;
};

inline Bytes lowest_height_by_every_offset(const Problem& problem) { return EveryOffset(problem).lowest_height(); }

// Every order, each item on top of those before it that it meets: a lowest placement, read from the bottom up, is one of these.
inline Bytes lowest_height_by_every_order(const Problem& problem) {
  std::vector<std::size_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Bytes best(std::numeric_limits<std::int64_t>::max());
  std::vector<Bytes> tops(problem.items.size());
  do {
    Bytes height;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Item& item = problem.items[order[i]];
      Bytes offset;
      for (std::size_t j = 0; j < i; ++j) {
        if (item.size.count() > 0 && alive_together(item, problem.items[order[j]])) offset = std::max(offset, tops[order[j]]);
      }
      tops[order[i]] = offset + round_up(item.size, problem.alignment);
      height = std::max(height, offset + item.size);
    }
    best = std::min(best, height);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

}  // namespace snug::placement
