// Activations by position: all operands have the same order in memory. Outputs may lie in the bytes of any input. T: float,
// __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

enum class Activation : std::uint8_t { gelu, gelu_by_tanh, silu };

template <typename T>
void activation(cudaStream_t stream, Activation kind, const T* x, T* y, std::int64_t count);
template <typename T>
void activation_grad(cudaStream_t stream, Activation kind, const T* dy, const T* x, T* dx, const T* addend, std::int64_t count);

}  // namespace snug::backends::cuda::launch
