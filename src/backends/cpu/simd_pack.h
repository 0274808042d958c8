// Packing loops over groups of neighbours, vectorised by Highway; ops/packing.h says what they compute. One thread each.
#pragma once

#include <cstdint>

#include "ops/packing.h"

namespace snug::backends::cpu::simd {

// What all groups of a value have in common.
struct PackRule {
  std::int64_t bits;
  std::uint64_t seed, counter_high;
};

// One group: at most ops::kPackGroup elements.
void pack(const PackRule& rule, std::uint64_t first_block, const float* x, std::int64_t elements, std::uint8_t* codes,
          ops::PackRange* range);
void unpack(std::int64_t bits, const std::uint8_t* codes, const ops::PackRange& range, float* x, std::int64_t elements);

}  // namespace snug::backends::cpu::simd
