// Attention over packed queries, keys and values, and its gradients (ops/sequence/attention.cpp). T: float, __half or
// __nv_bfloat16; sums, exponentials and statistics are float.
//
// Deterministic: a query's gradient is made by one warp or block, and so is a key's, which adds the heads that share it in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

struct AttentionShape {
  std::uint32_t examples, length;            // N, T
  std::uint32_t heads, kv_heads, head_size;  // H, K, S
  bool causal;
};

struct AttentionRule {
  float scale;
  const std::int32_t* lengths;  // of the examples; nullptr: all have `length` keys
  const Scalars* scalars;
  // A probability is dropped where its random word is at most `last_dropped`; others are multiplied by `kept`.
  bool drops;
  std::uint32_t last_dropped;
  float kept;
  std::uint64_t key;
};

template <typename T>
struct AttentionOperands {
  const T* qkv;
  T* y;
  float* log_sum_exp;
};

// From the log_sum_exp and y, or from the probabilities.
template <typename T>
struct AttentionGradOperands {
  const T *dy, *qkv;
  const T* y;                // nullptr: from probabilities
  const float* log_sum_exp;  // nullptr: from probabilities
  const T* probabilities;    // before dropout; nullptr: from the log_sum_exp
  float* dy_times_y;         // [rows, heads], scratch: the sum over a head's columns
  T* dqkv;
};

// Plain kernels, a warp per row and head: for heads of any size up to this.
inline constexpr std::uint32_t kMostHeadSize = 256;
template <typename T>
void plain_attention(cudaStream_t stream, const AttentionOperands<T>& operands, const AttentionShape& shape,
                     const AttentionRule& rule);
template <typename T>
void attention_probabilities(cudaStream_t stream, const T* qkv, T* probabilities, const AttentionShape& shape,
                             const AttentionRule& rule);
template <typename T>
void plain_attention_grad(cudaStream_t stream, const AttentionGradOperands<T>& operands, const AttentionShape& shape,
                          const AttentionRule& rule);

// Tiles of queries against tiles of keys in shared memory, so much for one block of threads; 0: no kernel for heads of this size.
template <typename T>
std::size_t attention_tile_bytes(std::uint32_t head_size);
// The scale is above 0.
template <typename T>
void tiled_attention(cudaStream_t stream, const AttentionOperands<T>& operands, const AttentionShape& shape,
                     const AttentionRule& rule);
template <typename T>
void tiled_attention_grad(cudaStream_t stream, const AttentionGradOperands<T>& operands, const AttentionShape& shape,
                          const AttentionRule& rule);

}  // namespace snug::backends::cuda::launch
