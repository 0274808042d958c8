// Attention in square tiles of queries and keys, so that no row of probabilities is ever held. Everything here is about one block
// of queries, or of keys, on one thread; which blocks share a thread does not matter for the bits.
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"
#include "ops/sequence/attention.h"

namespace snug::backends::cpu::simd {

inline constexpr std::int64_t kAttentionTile = 64;  // queries, and keys

// What dropout draws in one run; see ops/random_draws.h.
struct AttentionDraws {
  std::uint64_t seed = 0, counter_high = 0;
  std::uint64_t first_example = 0;
  std::uint64_t threshold = 0;  // a probability is kept when its word is at least this; 0: nothing is dropped
  float kept = 1;               // what kept ones are multiplied by
};

template <typename T>
struct AttentionInputs {
  ops::AttentionGeometry g;
  float scale;
  const T *queries, *keys;      // rows with queries, and with keys and values: the same where these are not apart
  const std::int32_t* lengths;  // null: all keys are there
  AttentionDraws draws;
};

// A block of queries of one head, or of keys of one head of keys: `first` is the position of its first row.
struct AttentionBlock {
  std::int64_t example, head, first;
};

// What backward reads and writes. Either `probabilities` are there, or y and log_sum_exp.
template <typename T>
struct AttentionGradient {
  const T *dy, *y;
  const float* log_sum_exp;
  const T* probabilities;
  T *dqueries, *dkeys;  // as queries and keys
};

// Floats of scratch that a block needs, and what the gradient of one head of keys needs beside them for its sums.
std::int64_t attention_scratch(std::int64_t head_size);
std::int64_t attention_gradient_scratch(std::int64_t head_size);
std::int64_t attention_gradient_sums(const ops::AttentionGeometry& g);

template <typename T>
struct AttentionLoops {
  void (*forward)(const AttentionInputs<T>& in, AttentionBlock queries, T* y, float* log_sum_exp, float* scratch);
  void (*probabilities)(const AttentionInputs<T>& in, AttentionBlock queries, T* probabilities, float* scratch);
};
template <typename T>
const AttentionLoops<T>& attention_loops();

template <typename T>
struct AttentionGradientLoops {
  // Of a head of keys with all query heads that read it: keys, values and queries, with each tile computed once.
  void (*whole)(const AttentionInputs<T>& in, const AttentionGradient<T>& gradient, std::int64_t example, std::int64_t kv_head,
                float* sums, float* scratch);
  // The same bits without the sums: of a block of queries, and of a block of keys. Each tile is computed twice.
  void (*queries)(const AttentionInputs<T>& in, const AttentionGradient<T>& gradient, AttentionBlock block, float* scratch);
  void (*keys)(const AttentionInputs<T>& in, const AttentionGradient<T>& gradient, AttentionBlock block, float* scratch);
};
template <typename T>
const AttentionGradientLoops<T>& attention_gradient_loops();

}  // namespace snug::backends::cpu::simd
