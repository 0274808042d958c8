// Random draws and initial values: dropout, initialization, augmented images. All draws are those of ops/random_draws.h.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

// From the position of an element to its index in logical (row-major) order: the identity, or the transpose of each example's
// matrix of `channels` and pixels.
struct LogicalOrder {
  std::uint32_t example;   // elements
  std::uint32_t channels;  // innermost in memory; 0: memory is in logical order
};

// `draws_per_example`: how many draws an example takes; 0 for values that do not depend on the examples.
template <typename T>
void dropout(cudaStream_t stream, const T* x, T* y, const Scalars* scalars, double probability, std::uint64_t key,
             std::uint64_t draws_per_example, LogicalOrder order, std::int64_t count);

// T: float, __half, __nv_bfloat16 or double.
template <typename T>
void fill(cudaStream_t stream, T* w, double value, std::int64_t count);
template <typename T>
void init_normal(cudaStream_t stream, T* w, const Scalars* scalars, double std, std::uint64_t key, LogicalOrder order,
                 std::int64_t count);
template <typename T>
void init_uniform(cudaStream_t stream, T* w, const Scalars* scalars, double bound, std::uint64_t key, LogicalOrder order,
                  std::int64_t count);

inline constexpr int kMaxImageChannels = 16;
struct ImageConstants {
  double mean[kMaxImageChannels];
  double deviation[kMaxImageChannels];
  std::uint32_t channels, height, width;
  std::int64_t padding;
  bool augment;
};
// Both channels_last.
template <typename T>
void image_input(cudaStream_t stream, const std::uint8_t* images, T* y, const Scalars* scalars, const ImageConstants& constants,
                 std::int64_t count);

}  // namespace snug::backends::cuda::launch
