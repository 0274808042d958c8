// activation(first half of a row) * second half, and its gradient. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

enum class Gate : std::uint8_t { sigmoid, silu, gelu_by_tanh };

// x [rows, 2 half], y [rows, half]
template <typename T>
void gated_linear_unit(cudaStream_t stream, Gate activation, const T* x, T* y, std::uint32_t rows, std::uint32_t half);
// dx may lie in the bytes of x.
template <typename T>
void gated_linear_unit_grad(cudaStream_t stream, Gate activation, const T* dy, const T* x, T* dx, std::uint32_t rows,
                            std::uint32_t half);

}  // namespace snug::backends::cuda::launch
