// Packing loops over groups of neighbors, vectorized by Highway; ops/packing.h says what they compute. One thread each.
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"
#include "ops/packing.h"

namespace snug::backends::cpu::simd {

// What all groups of a value have in common.
struct PackRule {
  std::int64_t bits;
  std::uint64_t seed, counter_high;
};

// Of one group: at most ops::kPackGroup elements; T is float, Bfloat16 or Half.
template <typename T>
struct PackLoops {
  void (*pack)(const PackRule& rule, std::uint64_t first_block, const T* x, std::int64_t elements, std::uint8_t* codes,
               ops::PackRange* range);
  void (*unpack)(std::int64_t bits, const std::uint8_t* codes, const ops::PackRange& range, T* x, std::int64_t elements);
};
template <typename T>
const PackLoops<T>& pack_loops();

}  // namespace snug::backends::cpu::simd
