// Looks for the last byte of device memory that is not the canary.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

// *result (a word of device memory, set to 0 before) becomes one past the number of the last of `bytes` bytes from `data` on that
// differs from `canary`; it stays 0 when none does. `data` is aligned to 16 bytes.
void find_last_changed(cudaStream_t stream, const std::byte* data, std::uint64_t bytes, std::uint8_t canary,
                       unsigned long long* result);

}  // namespace snug::backends::cuda::launch
