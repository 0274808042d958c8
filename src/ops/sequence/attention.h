// The geometry of attention, read once from shapes and attributes; shape inference and the kernels of all backends share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/philox.h"
#include "ir/attributes.h"
#include "ir/op.h"
#include "ir/type.h"

namespace snug::ops {

// The log_sum_exp of a query that sees no key: the lowest finite number of an f32, in f64 too.
inline constexpr float kNothingSeen = std::numeric_limits<float>::lowest();

// How the columns of qkv [R,(H+2K)*S] are divided.
struct AttentionHeads {
  std::int64_t count, of_keys;  // H and K
  std::int64_t size;            // S

  // UserError when qkv and the attributes do not go together.
  static AttentionHeads from(const Shape& qkv, const Attributes& attributes);
};

struct AttentionGeometry {
  std::int64_t examples;
  std::int64_t length, key_length;  // queries of an example, and its keys
  std::int64_t heads, kv_heads;     // H and K
  std::int64_t head_size;           // S
  bool causal;
  bool apart;  // queries are a value of their own, and so are keys and values: those of cross_attention

  // UserError when qkv [R,(H+2K)*S] and the attributes do not go together.
  static AttentionGeometry from(const Shape& qkv, const Attributes& attributes);
  // The same for q [R,H*S] and kv [U,2K*S], whose heads the attributes name.
  static AttentionGeometry from_apart(const Shape& q, const Shape& kv, const Attributes& attributes);

  std::int64_t rows() const { return examples * length; }
  std::int64_t key_rows() const { return examples * key_length; }
  std::int64_t heads_per_kv_head() const { return heads / kv_heads; }

  // The first column of a head in a row with queries, and in one with keys and values; and the columns of these rows.
  std::int64_t query_column(std::int64_t head) const { return head * head_size; }
  std::int64_t key_column(std::int64_t kv_head) const { return ((apart ? 0 : heads) + kv_head) * head_size; }
  std::int64_t value_column(std::int64_t kv_head) const { return key_column(kv_heads + kv_head); }
  std::int64_t query_columns() const { return apart ? width() : key_columns(); }
  std::int64_t key_columns() const { return ((apart ? 0 : heads) + 2 * kv_heads) * head_size; }
  std::int64_t width() const { return heads * head_size; }  // of the result

  // Keys that a query sees: 0 to the result, without it. `length_of_example`: the example's entry of `lengths`, which may be any
  // number in padding; `key_length` where there are no lengths.
  SNUG_HOST_DEVICE static std::int64_t keys_seen(std::int64_t query, std::int64_t key_length, std::int64_t length_of_example,
                                                 bool causal) {
    const std::int64_t most = causal ? query + 1 : key_length;
    return length_of_example < 0 ? 0 : length_of_example < most ? length_of_example : most;
  }

  // Pairs of a query and a key, over all examples and heads, that are computed where no lengths shorten them.
  std::int64_t pairs() const;
};

// Of attention_step, which has one query of each example and the keys before it.
struct StepGeometry {
  std::int64_t examples, context;  // R and C
  std::int64_t heads, kv_heads;    // H and K
  std::int64_t head_size;          // S

  // UserError when qkv [R,(H+2K)*S], keys [R*C,K*S] and the attributes do not go together.
  static StepGeometry from(const Shape& qkv, const Shape& keys, const Attributes& attributes);

  std::int64_t heads_per_kv_head() const { return heads / kv_heads; }
  std::int64_t columns() const { return (heads + 2 * kv_heads) * head_size; }  // of qkv
  std::int64_t width() const { return heads * head_size; }                     // of the result
  std::int64_t kv_width() const { return kv_heads * head_size; }               // of keys and values
};

// What `dropout_word` takes for one probability. `example` is counted within the step: first_example + n.
SNUG_HOST_DEVICE constexpr std::uint64_t attention_dropout_element(std::uint64_t example, std::uint64_t heads,
                                                                   std::uint64_t length, std::uint64_t key_length,
                                                                   std::uint64_t head, std::uint64_t query, std::uint64_t key) {
  return ((example * heads + head) * length + query) * key_length + key;
}

// Checks scalars and lengths?, the inputs from `first` on, and the attributes of every kind of attention.
void require_attention_rest(const OpCall& call, std::size_t first, const AttentionGeometry& g);

// Per pair of a query and a key that it sees: so many products of S numbers, and so many operations beside them. Forward needs
// two products and a softmax; backward makes the scores anew and takes five.
struct PairWork {
  std::int64_t products, beside;
};
inline constexpr PairWork kAttentionForward{.products = 2, .beside = 5};
inline constexpr PairWork kAttentionBackward{.products = 5, .beside = 6};
std::int64_t attention_flops(const AttentionGeometry& g, PairWork work);

}  // namespace snug::ops
