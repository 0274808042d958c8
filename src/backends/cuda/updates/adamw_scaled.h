// The update of ops/updates/adamw_scaled.cpp, by position: three launches. The first finds the largest new moments, block by
// block; the second the new scales; the third makes the step. Outputs may lie in the bytes of the inputs that are theirs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/updates/adamw.h"

namespace snug::backends::cuda::launch {

// What the launches leave each other: the scales before and after the step, then each block's largest moments.
struct MomentScratch {
  MomentPair scales, new_scales;
  MomentPair largest[1];
};

// Enough to keep the GPU busy; more would only be more to compare in the second launch.
inline std::uint32_t blocks_of_moments(std::int64_t elements) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(elements / 8192, 1, 1024));
}
inline std::int64_t moment_scratch_bytes(std::int64_t elements) {
  return static_cast<std::int64_t>(sizeof(MomentScratch) + (blocks_of_moments(elements) - 1) * sizeof(MomentPair));
}

template <typename T>
void adamw_scaled(cudaStream_t stream, const AdamwOperands<T, __half>& operands, const AdamwConstants& constants,
                  const MomentPair* scales, MomentPair* new_scales, MomentScratch* scratch, std::int64_t count);

}  // namespace snug::backends::cuda::launch
