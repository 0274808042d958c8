// Sums over pixels, for a few neighboring channels at a time: in channels-last values these lie side by side.
#pragma once

#include <algorithm>
#include <cstdint>

namespace snug::backends::reference {

inline constexpr std::int64_t kBlock = 16;

// Channels first .. first + size - 1.
struct ChannelBlock {
  std::int64_t first, size;

  static std::int64_t count(std::int64_t channels) { return (channels + kBlock - 1) / kBlock; }
  static ChannelBlock at(std::int64_t index, std::int64_t channels) {
    return {.first = index * kBlock, .size = std::min(kBlock, channels - index * kBlock)};
  }
};

// One sum in double for each channel of a block.
struct BlockSums {
  double sums[kBlock] = {};

  // Adds value(n, c, p) over the examples of [begin, end) and all pixels, in that order.
  template <typename Value>
  void add(ChannelBlock block, std::int64_t begin, std::int64_t end, std::int64_t pixels, const Value& value) {
    for (std::int64_t n = begin; n < end; ++n) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        for (std::int64_t i = 0; i < block.size; ++i) sums[i] += value(n, block.first + i, p);
      }
    }
  }
};

}  // namespace snug::backends::reference
