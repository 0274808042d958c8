// Where the elements of a value lie, in any layout that oneDNN describes: for copies that are not worth a library's kernel, and
// for 16-bit numbers, which a copy must not change.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <dnnl.hpp>

#include "ir/type.h"

namespace snug::backends::cpu {

// In every layout, blocked ones included, an element's place is a sum of one number per index.
class LayoutMap {
 public:
  static constexpr std::size_t kRank = 5;  // of a grouped convolution's weight

  explicit LayoutMap(const dnnl::memory::desc& description);
  explicit LayoutMap(const Type& type);

  std::int64_t size(std::size_t dim) const { return static_cast<std::int64_t>(places_[dim].size()); }
  // In the order of the indices.
  std::int64_t elements() const { return size(0) * size(1) * size(2) * size(3) * size(4); }

  // The summand of one index.
  std::int64_t place(std::size_t dim, std::int64_t index) const { return places_[dim][static_cast<std::size_t>(index)]; }

  std::int64_t operator()(const std::array<std::int64_t, kRank>& at) const {
    std::int64_t place = 0;
    for (std::size_t dim = 0; dim < kRank; ++dim) place += places_[dim][static_cast<std::size_t>(at[dim])];
    return place;
  }

 private:
  std::array<std::vector<std::int64_t>, kRank> places_;  // missing dimensions have one index
};

// body(indices, number in the order of the indices) for elements [begin, end) of that order.
template <typename Body>
void for_each_element(const LayoutMap& map, std::int64_t begin, std::int64_t end, const Body& body) {
  std::array<std::int64_t, LayoutMap::kRank> at{};
  std::int64_t rest = begin;
  for (std::size_t dim = LayoutMap::kRank; dim-- > 0;) {
    at[dim] = rest % map.size(dim);
    rest /= map.size(dim);
  }
  for (std::int64_t number = begin; number < end; ++number) {
    body(at, number);
    for (std::size_t dim = LayoutMap::kRank; dim-- > 0;) {
      if (++at[dim] < map.size(dim)) break;
      at[dim] = 0;
    }
  }
}

}  // namespace snug::backends::cpu
