// Which keys a query sees, and which probabilities are dropped.
#pragma once

#include <cstdint>

#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/attention.h"
#include "ops/random_draws.h"

namespace snug::backends::cuda {

// The log_sum_exp of a query that sees no key: the lowest finite number.
inline constexpr float kNothingSeen = -3.402823466e+38F;
inline constexpr float kLog2OfE = 1.4426950408889634F;

// Keys of an example that count: those before its end and below its entry of the lengths, which may be any number in padding.
__device__ inline int keys_of_example(const launch::AttentionShape& shape, const launch::AttentionRule& rule,
                                      std::uint32_t example) {
  const int length = static_cast<int>(shape.length);
  return rule.lengths == nullptr ? length : max(0, min(length, rule.lengths[example]));
}

// Keys that a query sees: 0 to the result, without it.
__device__ inline int keys_seen(int query, int keys, bool causal) { return causal ? min(query + 1, keys) : keys; }

// Element numbers of one head's probabilities: (query, key) is first + query * length + key.
struct AttentionDraws {
  std::uint64_t seed, step, key, first;
  std::uint32_t length, last_dropped;

  __device__ AttentionDraws(const launch::AttentionShape& shape, const launch::AttentionRule& rule, std::uint32_t example,
                            std::uint32_t head)
      : seed(rule.scalars->seed),
        step(rule.scalars->step),
        key(rule.key),
        first(((rule.scalars->first_example + example) * shape.heads + head) * shape.length * shape.length),
        length(shape.length),
        last_dropped(rule.last_dropped) {}

  __device__ std::uint64_t element(int query, int key_position) const {
    return first + static_cast<std::uint64_t>(query) * length + static_cast<std::uint64_t>(key_position);
  }
  // Whether four neighboring keys from a multiple of four on share a block of random words, as the first of them does.
  __device__ bool whole_blocks() const { return length % 4 == 0; }

  __device__ std::uint32_t word(int query, int key_position) const {
    return ops::dropout_word(seed, step, key, element(query, key_position));
  }
  __device__ PhiloxBlock block(int query, int first_key) const {
    return ops::dropout_block(seed, step, key, element(query, first_key) / 4);
  }
  __device__ bool keeps(std::uint32_t word) const { return word > last_dropped; }
};

}  // namespace snug::backends::cuda
