// Attention over packed queries, keys and values, and its gradients (ops/sequence/attention.cpp). T: float, __half or
// __nv_bfloat16; sums, exponentials and statistics are float.
//
// Deterministic: a query's gradient is made by one warp or block, and so is a key's, which adds the heads that share it in order.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/sequence/attention_shape.h"

namespace snug::backends::cuda::launch {

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

// Tiles of queries against tiles of keys on tensor cores: for values of 16 bits, heads of up to this size whose columns are a
// multiple of eight, and a scale above 0. Each is prepared once before its first launch: blocks of threads may then use the
// shared memory that the tiles take.
inline constexpr std::uint32_t kMostTiledHeadSize = 128;
template <typename T>
void prepare_tiled_attention(const AttentionShape& shape, const AttentionRule& rule);
template <typename T>
void tiled_attention(cudaStream_t stream, const AttentionOperands<T>& operands, const AttentionShape& shape,
                     const AttentionRule& rule);
template <typename T>
void prepare_tiled_attention_grad(const AttentionShape& shape, const AttentionRule& rule);
template <typename T>
void tiled_attention_grad(cudaStream_t stream, const AttentionGradOperands<T>& operands, const AttentionShape& shape,
                          const AttentionRule& rule);

}  // namespace snug::backends::cuda::launch
