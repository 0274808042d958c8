// The order of an epoch, computed instead of stored: resuming needs three numbers, and ten million examples take no memory.
#pragma once

#include <cstdint>

namespace snug::data {

// A permutation of 0..size-1 keyed by (seed, epoch): a Feistel network over the smallest power of two that holds `size`, walked
// until it lands below `size` (fewer than two steps on average).
class Permutation {
 public:
  Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size);

  // index < size
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t scramble(std::uint64_t value) const;

  std::uint64_t key_;
  std::uint64_t epoch_;
  std::uint64_t size_;
  unsigned bits_;
};

}  // namespace snug::data
