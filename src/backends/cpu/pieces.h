// Parts of kernels in several folders.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/kernel.h"

namespace snug::backends::cpu {

// Parts of other kernels, on all threads: out = a + b; to = from as floats, or back, rounded; out = sum + fresh, with the new
// floats rounded before they are added; and a plain copy.
std::unique_ptr<BoundKernel> add_elements(DType dtype, const std::byte* a, const std::byte* b, std::byte* out, std::int64_t count,
                                          int threads);
std::unique_ptr<BoundKernel> widen_elements(DType dtype, const std::byte* from, float* to, std::int64_t count, int threads);
std::unique_ptr<BoundKernel> narrow_elements(DType dtype, const float* from, std::byte* to, std::int64_t count, int threads);
std::unique_ptr<BoundKernel> add_floats(DType dtype, const std::byte* sum, const float* fresh, std::byte* out, std::int64_t count,
                                        int threads);
std::unique_ptr<BoundKernel> copy_bytes(const std::byte* source, std::byte* target, Bytes size);

}  // namespace snug::backends::cpu
