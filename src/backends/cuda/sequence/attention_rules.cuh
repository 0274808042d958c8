// Which keys a query sees, and which probabilities are dropped.
#pragma once

#include <cstdint>

#include "backends/cuda/sequence/attention_shape.h"
#include "ops/random_draws.h"

namespace snug::backends::cuda {

// The log_sum_exp of a query that sees no key: the lowest finite number.
inline constexpr float kNothingSeen = -3.402823466e+38F;
inline constexpr float kLog2OfE = 1.4426950408889634F;

// Keys of an example that count: those before its end and below its entry of the lengths, which may be any number in padding.
SNUG_HOST_DEVICE inline int keys_of_example(const launch::AttentionShape& shape, const launch::AttentionRule& rule,
                                            std::uint32_t example) {
  const int length = static_cast<int>(shape.key_length);
  if (rule.lengths == nullptr) return length;
  const int given = rule.lengths[example];
  return given < 0 ? 0 : given < length ? given : length;
}

// Keys that a query sees: 0 to the result, without it.
SNUG_HOST_DEVICE inline int keys_seen(int query, int keys, bool causal) { return causal && query + 1 < keys ? query + 1 : keys; }

// Element numbers of one head's probabilities: (query, key) is first + query * key_length + key.
struct AttentionDraws {
  std::uint64_t seed, step, key, first;
  std::uint32_t key_length, last_dropped;

  SNUG_HOST_DEVICE AttentionDraws(const launch::AttentionShape& shape, const launch::AttentionRule& rule, std::uint32_t example,
                                  std::uint32_t head)
      : seed(rule.scalars->seed),
        step(rule.scalars->step),
        key(rule.key),
        first(((rule.scalars->first_example + example) * shape.heads + head) * shape.length * shape.key_length),
        key_length(shape.key_length),
        last_dropped(rule.last_dropped) {}

  SNUG_HOST_DEVICE std::uint64_t element(int query, int key_position) const {
    return first + static_cast<std::uint64_t>(query) * key_length + static_cast<std::uint64_t>(key_position);
  }
  // Whether four neighboring keys from a multiple of four on share a block of random words, as the first of them does.
  SNUG_HOST_DEVICE bool whole_blocks() const { return key_length % 4 == 0; }

  SNUG_HOST_DEVICE std::uint32_t word(int query, int key_position) const {
    return ops::dropout_word(seed, step, key, element(query, key_position));
  }
  SNUG_HOST_DEVICE PhiloxBlock block(int query, int first_key) const {
    return ops::dropout_block(seed, step, key, element(query, first_key) / 4);
  }
  SNUG_HOST_DEVICE bool keeps(std::uint32_t word) const { return word > last_dropped; }
};

}  // namespace snug::backends::cuda
