// Kernels that work by position: all operands have the same order in memory. Outputs may lie in the bytes of any input, which
// each thread has read before it writes. T: float, __half or __nv_bfloat16 (add also double).
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

template <typename T>
void relu(cudaStream_t stream, const T* x, T* y, std::int64_t count);
template <typename T>
void relu_grad(cudaStream_t stream, const T* dy, const T* y, T* dx, const T* addend, std::int64_t count);
// Bit i % 8 of byte i / 8 belongs to element i.
template <typename T>
void relu_grad_bits(cudaStream_t stream, const T* dy, const std::uint8_t* bits, T* dx, const T* addend, std::int64_t count);
template <typename T>
void sign_bits(cudaStream_t stream, const T* y, std::uint8_t* bits, std::int64_t count);
template <typename T>
void add(cudaStream_t stream, const T* a, const T* b, T* y, std::int64_t count);

}  // namespace snug::backends::cuda::launch
