// The update of ops/updates/adamw_quantized.cpp, by position. Outputs may lie in the bytes of the inputs that are theirs.
#pragma once

#include <cstdint>

#include "backends/cuda/updates/adamw.h"

namespace snug::backends::cuda::launch {

// `scales`, old and new: a pair for every block of codes.
template <typename T>
void adamw_quantized(cudaStream_t stream, const AdamwOperands<T, std::uint8_t>& operands, const AdamwConstants& constants,
                     const MomentPair* scales, MomentPair* new_scales, std::int64_t count);

}  // namespace snug::backends::cuda::launch
