// Blocks of states in 8 bits: which elements each has, and where its codes and scales lie.
#pragma once

#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/update.h"
#include "ops/updates/block_code.h"

namespace snug::backends::cpu {

// Block `block` of the codes in `from`, and where its new codes go; its scales, old and new, are at these places.
inline simd::CodedBlock coded_block(const std::uint8_t* from, std::uint8_t* to, std::int64_t block, const float* scale,
                                    float* new_scale) {
  const std::int64_t first = block * ops::kCodeBlock;
  return {.codes = from + first, .scale = *scale, .new_codes = to + first, .new_scale = new_scale};
}

// body(block, first, count) for every block of `elements`, on all threads.
template <typename Body>
void for_each_block(std::int64_t elements, int threads, const Body& body) {
  for_each_part(ops::code_blocks(elements), threads, 1, [&](int, Range part) {
    for (std::int64_t block = part.begin; block < part.end; ++block) {
      const std::int64_t first = block * ops::kCodeBlock;
      body(block, first, std::min(ops::kCodeBlock, elements - first));
    }
  });
}

}  // namespace snug::backends::cpu
