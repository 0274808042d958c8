#include "placement/branch_and_bound.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace snug::placement {
namespace {

// Of all the lowest placements take one with the smallest sum of offsets. In it no single item can be moved down. So, with the
// items put down in order of offset (and of number at equal offsets),
//   1. each lies directly on the skyline, the upper edge over time of those before it;
//   2. none is put down so high that another one, still waiting, would have fitted wholly beneath it.
// The search tries exactly the orders that keep these two rules: far fewer than all, and the best one is among them.
class Search {
 public:
  Search(const Problem& problem, const Timeline& timeline, Bytes floor, Bytes ceiling, std::int64_t& nodes_left)
      : floor_(floor), best_height_(ceiling), nodes_left_(nodes_left) {
    const auto moments = static_cast<std::size_t>(timeline.moments);
    skyline_.resize(moments);
    waiting_bytes_.resize(moments);
    largest_padding_.resize(moments);
    offsets_.resize(problem.items.size());
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      if (problem.items[i].size.count() == 0) continue;
      const Bytes rounded = round_up(problem.items[i].size, problem.alignment);
      const Bytes padding = rounded - problem.items[i].size;
      const Piece piece{.item = i,
                        .begin = static_cast<std::size_t>(timeline.spans[i].begin),
                        .end = static_cast<std::size_t>(timeline.spans[i].end),
                        .rounded = rounded,
                        .padding = padding,
                        .twin = std::nullopt};
      for (std::size_t m = piece.begin; m < piece.end; ++m) {
        waiting_bytes_[m] += rounded;
        largest_padding_[m] = std::max(largest_padding_[m], padding);
      }
      pieces_.push_back(piece);
    }
    link_twins();
  }

  std::optional<Placement> run() {
    put_down_next(pieces_.size(), Bytes(0), 0, Bytes(0));
    return std::move(best_);
  }

 private:
  struct Piece {
    std::size_t item;
    std::size_t begin;  // moments
    std::size_t end;
    Bytes rounded;
    Bytes padding;
    std::optional<std::size_t> twin;  // the piece before this one of the same size and life, if any
    bool placed = false;
  };

  struct Choice {
    Bytes offset;
    std::size_t piece;
  };

  // Twins are put down in order of number: the other orders give the same placement with swapped names.
  void link_twins() {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      for (std::size_t j = i; j-- > 0 && !pieces_[i].twin;) {
        const auto looks = [](const Piece& piece) { return std::tuple(piece.begin, piece.end, piece.rounded, piece.padding); };
        if (looks(pieces_[i]) == looks(pieces_[j])) pieces_[i].twin = j;
      }
    }
  }

  Bytes top_of_skyline(const Piece& piece) const {
    const std::span<const Bytes> skyline(skyline_);
    return std::ranges::max(skyline.subspan(piece.begin, piece.end - piece.begin));
  }

  // All waiting items will lie at `lowest` or higher.
  bool can_beat_best(Bytes lowest) const {
    for (std::size_t m = 0; m < skyline_.size(); ++m) {
      if (waiting_bytes_[m].count() == 0) continue;
      if (std::max(skyline_[m], lowest) + waiting_bytes_[m] - largest_padding_[m] >= best_height_) return false;
    }
    return true;
  }

  bool finished() const { return nodes_left_ <= 0 || best_height_ <= floor_; }

  // `lowest` and `last` are the offset and the piece put down before this one: the order of the search.
  void put_down_next(std::size_t waiting, Bytes lowest, std::size_t last, Bytes height) {
    if (height >= best_height_) return;
    if (waiting == 0) {
      best_height_ = height;
      best_ = Placement{.offsets = offsets_, .height = height};
      return;
    }
    if (!can_beat_best(lowest)) return;
    for (const Choice& choice : choices(lowest, last)) {
      if (finished()) return;
      // A placement found since may have made the rest hopeless.
      if (!can_beat_best(choice.offset)) return;
      put_down(choice, waiting, height);
    }
  }

  void put_down(const Choice& choice, std::size_t waiting, Bytes height) {
    --nodes_left_;
    Piece& piece = pieces_[choice.piece];
    const std::span<Bytes> skyline = std::span(skyline_).subspan(piece.begin, piece.end - piece.begin);
    const std::vector<Bytes> before(skyline.begin(), skyline.end());
    const Bytes top = choice.offset + piece.rounded;
    std::ranges::fill(skyline, top);
    for (std::size_t m = piece.begin; m < piece.end; ++m) waiting_bytes_[m] -= piece.rounded;
    piece.placed = true;
    offsets_[piece.item] = choice.offset;

    put_down_next(waiting - 1, choice.offset, choice.piece, std::max(height, top - piece.padding));

    piece.placed = false;
    for (std::size_t m = piece.begin; m < piece.end; ++m) waiting_bytes_[m] += piece.rounded;
    std::ranges::copy(before, skyline.begin());
  }

  // By offset, at equal offsets the larger first: a good first descent allows early cuts.
  std::vector<Choice> choices(Bytes lowest, std::size_t last) const {
    std::vector<Choice> choices;
    std::optional<Bytes> lowest_end;  // of a piece put down now
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      if (piece.placed) continue;
      const Bytes offset = top_of_skyline(piece);
      lowest_end = lowest_end ? std::min(*lowest_end, offset + piece.rounded) : offset + piece.rounded;
      const bool in_order = offset > lowest || (offset == lowest && i >= last);
      const bool twin_waits = piece.twin && !pieces_[*piece.twin].placed;
      if (in_order && !twin_waits) choices.push_back({offset, i});
    }
    std::erase_if(choices, [&](const Choice& choice) { return choice.offset >= *lowest_end; });  // rule 2
    std::ranges::stable_sort(
        choices, {}, [&](const Choice& choice) { return std::pair(choice.offset, Bytes(0) - pieces_[choice.piece].rounded); });
    return choices;
  }

  Bytes floor_;
  Bytes best_height_;
  std::int64_t& nodes_left_;
  std::optional<Placement> best_;

  std::vector<Piece> pieces_;
  std::vector<Bytes> offsets_;  // of the items put down

  // For each moment:
  std::vector<Bytes> skyline_;
  std::vector<Bytes> waiting_bytes_;    // of the items alive that are not put down yet
  std::vector<Bytes> largest_padding_;  // of an item alive; the topmost item needs no padding
};

}  // namespace

std::optional<Placement> branch_and_bound(const Problem& problem, const Timeline& timeline, Bytes floor, Bytes ceiling,
                                          std::int64_t& nodes_left) {
  return Search(problem, timeline, floor, ceiling, nodes_left).run();
}

}  // namespace snug::placement
