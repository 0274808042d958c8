// What the attention kernels are given (ops/sequence/attention.cpp). Without CUDA's headers: tests run the tiles on the host.
#pragma once

#include <cstdint>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

struct AttentionShape {
  std::uint32_t examples, length, key_length;  // of an example: queries, and keys
  std::uint32_t heads, kv_heads, head_size;    // H, K, S
  // Columns of a row with queries and of one with keys and values, and the first of these: a row has all, or they are apart.
  std::uint32_t query_width, key_width, first_key_column;
  bool causal;
};

struct AttentionRule {
  float scale;
  const std::int32_t* lengths;  // of the examples; nullptr: all have `key_length` keys
  const Scalars* scalars;
  // A probability is dropped where its random word is at most `last_dropped`; others are multiplied by `kept`.
  bool drops;
  std::uint32_t last_dropped;
  float kept;
  std::uint64_t key;
};

template <typename T>
struct AttentionOperands {
  const T *queries, *keys;  // the same where these are not apart
  T* y;
  float* log_sum_exp;
};

// From the log_sum_exp and y, or from the probabilities.
template <typename T>
struct AttentionGradOperands {
  const T *dy, *queries, *keys;
  const T* y;                // nullptr: from probabilities
  const float* log_sum_exp;  // nullptr: from probabilities
  const T* probabilities;    // before dropout; nullptr: from the log_sum_exp
  float* dy_times_y;         // [rows, heads], scratch: the sum over a head's columns
  T *dqueries, *dkeys;
};

}  // namespace snug::backends::cuda::launch
