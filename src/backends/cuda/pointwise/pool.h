// Windows over channels-last pixels: pooling, the parameter-free shortcut, and the change of layout. T: float, __half or
// __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

struct PoolShape {
  int batch, channels, in_height, in_width, out_height, out_width;
  int kernel_height, kernel_width, stride_height, stride_width, padding_height, padding_width;

  std::int64_t inputs() const { return std::int64_t{batch} * in_height * in_width * channels; }
  std::int64_t outputs() const { return std::int64_t{batch} * out_height * out_width * channels; }
};

// The index of a window's largest element, in 4 bits (two per byte, the first in the low half) or 8.
struct Argmax {
  std::uint8_t* data;
  bool nibbles;
};

template <typename T>
void max_pool(cudaStream_t stream, const T* x, T* y, const PoolShape& shape);
template <typename T>
void max_pool_argmax(cudaStream_t stream, const T* x, Argmax argmax, const PoolShape& shape);
template <typename T>
void max_pool_grad(cudaStream_t stream, const T* dy, const T* x, T* dx, const T* addend, const PoolShape& shape);
template <typename T>
void max_pool_grad_argmax(cudaStream_t stream, const T* dy, Argmax argmax, T* dx, const T* addend, const PoolShape& shape);
template <typename T>
void avg_pool(cudaStream_t stream, const T* x, T* y, const PoolShape& shape);
template <typename T>
void avg_pool_grad(cudaStream_t stream, const T* dy, T* dx, const T* addend, const PoolShape& shape);

struct PixelShape {
  std::uint32_t batch, channels, pixels;
};
template <typename T>
void global_avg_pool(cudaStream_t stream, const T* x, T* y, const PixelShape& shape);
template <typename T>
void global_avg_pool_grad(cudaStream_t stream, const T* dy, T* dx, const T* addend, const PixelShape& shape);

struct ShortcutShape {
  std::uint32_t batch, in_channels, in_height, in_width;
  std::uint32_t out_channels, out_height, out_width, stride;
};
template <typename T>
void shortcut(cudaStream_t stream, const T* x, T* y, const ShortcutShape& shape);
template <typename T>
void shortcut_grad(cudaStream_t stream, const T* dy, T* dx, const T* addend, const ShortcutShape& shape);

// Transposes the matrix of channels and pixels of every example. `inner`: the length of the output's rows, channels for
// channels_last and pixels for row_major; `example`: channels * pixels.
template <typename T>
void transpose_examples(cudaStream_t stream, const T* x, T* y, std::uint32_t inner, std::uint32_t example, std::int64_t count);

}  // namespace snug::backends::cuda::launch
