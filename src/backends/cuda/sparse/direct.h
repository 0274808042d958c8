// Convolutions straight from the nonzeros, without any scratch. Work is proportional to the density. T: float, __half or
// __nv_bfloat16, summed in float.
#pragma once

#include "backends/cuda/convolution/direct.h"
#include "backends/cuda/sparse/store.h"

namespace snug::backends::cuda::launch {

// `bias` nullptr: none.
template <typename T>
void sparse_conv2d(cudaStream_t stream, const T* x, const SparsePattern& pattern, const T* values, const T* bias, T* y,
                   const ConvShape& shape);
template <typename T>
void sparse_conv2d_grad_input(cudaStream_t stream, const T* dy, const SparsePattern& pattern, const T* values, T* dx,
                              const ConvShape& shape);
// Adds to the gradients of the tensor's values.
template <typename T>
void sparse_conv2d_grad_weight(cudaStream_t stream, const T* dy, const T* x, const SparsePattern& pattern, T* gradient,
                               const ConvShape& shape);

}  // namespace snug::backends::cuda::launch
