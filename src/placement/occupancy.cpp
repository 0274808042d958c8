#include "placement/occupancy.h"

#include <algorithm>
#include <iterator>

namespace snug::placement {

void AddressSet::add(Bytes begin, Bytes end) {
  // The new range is merged with all those that overlap or touch it.
  const auto first = std::ranges::lower_bound(ranges_, begin, {}, &Range::end);
  const auto last = std::find_if(first, ranges_.end(), [&](const Range& range) { return range.begin > end; });
  if (first == last) {
    ranges_.insert(first, Range{begin, end});
    return;
  }
  first->begin = std::min(first->begin, begin);
  first->end = std::max(std::prev(last)->end, end);
  ranges_.erase(first + 1, last);
}

Bytes AddressSet::lowest_free(Bytes from, Bytes size) const {
  auto range = std::ranges::upper_bound(ranges_, from, {}, &Range::end);
  for (; range != ranges_.end() && range->begin < from + size; ++range) from = range->end;
  return from;
}

Bytes Occupancy::lowest_free(Span span, Bytes size) {
  in_the_way_.clear();
  cover(
      1, Span{0, leaves_}, span, [&](const Node& node) { in_the_way_.push_back(&node.some_time); },
      [&](const Node& node) { in_the_way_.push_back(&node.all_the_time); });
  // Each set in turn moves the candidate up, until none of them moves it any more.
  Bytes offset;
  std::size_t content = 0;
  for (std::size_t at = 0; content < in_the_way_.size(); at = at + 1 < in_the_way_.size() ? at + 1 : 0) {
    const Bytes pushed = in_the_way_[at]->lowest_free(offset, size);
    content = pushed == offset ? content + 1 : 1;
    offset = pushed;
  }
  return offset;
}

void Occupancy::take(Span span, Bytes begin, Bytes end) {
  cover(
      1, Span{0, leaves_}, span,
      [&](Node& node) {
        node.all_the_time.add(begin, end);
        node.some_time.add(begin, end);
      },
      [&](Node& node) { node.some_time.add(begin, end); });
}

}  // namespace snug::placement
