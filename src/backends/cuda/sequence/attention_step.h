// Attention of one row of each example over the keys and values of the rows before it, which two caches hold
// (ops/sequence/attention_step.cpp). T: float, __half or __nv_bfloat16; scores, exponentials and sums are float.
//
// Deterministic: a block makes a head of an example, with sums in an order that only the position decides.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace snug::backends::cuda::launch {

struct StepShape {
  std::uint32_t examples, context;           // R, C
  std::uint32_t heads, kv_heads, head_size;  // H, K, S
  float scale;
};

template <typename T>
struct StepOperands {
  const T* qkv;
  const T *keys_before, *values_before;
  const std::int32_t* positions;
  T* y;
  T *keys, *values;  // may lie in the bytes of those before
  float* weights;    // [examples, heads, context], scratch
};

template <typename T>
void attention_step(cudaStream_t stream, const StepOperands<T>& operands, const StepShape& shape);

}  // namespace snug::backends::cuda::launch
