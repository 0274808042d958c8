// Plain products, for what NVIDIA's libraries refuse (depthwise convolutions, odd shapes). Correct for every shape, but slow.
// They do not add to a sum: otherwise a plan would prefer them to a fast kernel and an addition. T: float, __half or
// __nv_bfloat16, summed in float.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

struct ConvShape {
  int batch, in_channels, in_height, in_width, out_channels, out_height, out_width;
  int kernel_height, kernel_width, stride_height, stride_width, padding_height, padding_width, dilation_height, dilation_width;
  int groups;
};

// Activations N,H,W,C; weights O,H,W,I. `bias` nullptr: none.
template <typename T>
void conv2d(cudaStream_t stream, const T* x, const T* weight, const T* bias, T* y, const ConvShape& shape);
template <typename T>
void conv2d_grad_input(cudaStream_t stream, const T* dy, const T* weight, T* dx, const ConvShape& shape);
template <typename T>
void conv2d_grad_weight(cudaStream_t stream, const T* dy, const T* x, T* dw, const ConvShape& shape);

// result[i * result_row + j] (+)= sum over k of a[i * a_row + k * a_depth] * b[k * b_depth + j * b_column]   (+ bias[j])
struct ProductShape {
  std::uint32_t rows, columns, depth;
  std::uint32_t a_row, a_depth, b_depth, b_column;
  std::uint32_t result_row;
  bool adds = false;  // to what lies there; the sum is rounded once
  // Of several products: elements from a matrix to the next.
  std::uint32_t batch = 1;
  std::size_t a_matrix = 0, b_matrix = 0, result_matrix = 0;
};
// R: T, or float.
template <typename T, typename R>
void product(cudaStream_t stream, const T* a, const T* b, const T* bias, R* result, const ProductShape& shape);

}  // namespace snug::backends::cuda::launch
