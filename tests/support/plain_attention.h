// Attention written down plainly, over one matrix of scores for each head: what kernels are compared with, and what their
// backward reads.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ir/attributes.h"
#include "ir/example_rows.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"

namespace snug::support {

struct AttentionSettings {
  std::int64_t examples = 1, length = 1, heads = 1, kv_heads = 1, head_size = 1;
  bool causal = true;
  double scale = 1;
  double dropout = 0;
  std::int64_t key = 1;
  std::vector<double> lengths = {};  // of the examples; empty: none
  std::int64_t key_length = 0;       // of cross attention, whose queries are apart from keys and values; 0: attention
  Scalars scalars = {};

  bool apart() const { return key_length > 0; }
  std::int64_t keys() const { return apart() ? key_length : length; }  // of an example
  std::int64_t rows() const { return examples * length; }
  std::int64_t key_rows() const { return examples * keys(); }
  std::int64_t columns() const { return (heads + 2 * kv_heads) * head_size; }  // of queries, keys and values together
  std::int64_t query_columns() const { return apart() ? width() : columns(); }
  std::int64_t key_columns() const { return apart() ? columns() - width() : columns(); }
  std::int64_t width() const { return heads * head_size; }

  // Numbers of the first column of a query head and of a head of keys and of values.
  std::size_t query_at(std::int64_t example, std::int64_t position, std::int64_t head) const {
    return static_cast<std::size_t>((example * length + position) * query_columns() + head * head_size);
  }
  std::size_t key_at(std::int64_t example, std::int64_t position, std::int64_t kv_head) const {
    return static_cast<std::size_t>((example * keys() + position) * key_columns() +
                                    ((apart() ? 0 : heads) + kv_head) * head_size);
  }
  std::size_t value_at(std::int64_t example, std::int64_t position, std::int64_t kv_head) const {
    return key_at(example, position, kv_heads + kv_head);
  }

  Attributes attributes() const {
    Attributes result{{"heads", heads}, {"kv_heads", kv_heads}, {"scale", scale}, {"dropout", dropout}, {"key", key}};
    if (apart()) {
      result.set("key_rows_per_example", key_length);
    } else {
      result.set("causal", std::int64_t{causal ? 1 : 0});
    }
    set_rows_per_example(result, length);
    return result;
  }
};

struct PlainAttention {
  std::vector<double> y, log_sum_exp, probabilities;
};

namespace detail {

// Of a query: example, head, position.
struct Query {
  std::int64_t n, h, t;
};

inline std::vector<double> scores_of_seen_keys(const AttentionSettings& s, const std::vector<double>& queries,
                                               const std::vector<double>& keys, Query q) {
  const std::int64_t kv_head = q.h / (s.heads / s.kv_heads);
  const std::size_t query = s.query_at(q.n, q.t, q.h);
  std::vector<double> scores;
  for (std::int64_t j = 0; j < s.keys(); ++j) {
    const bool is_behind = !s.apart() && s.causal && j > q.t;
    const bool is_over = !s.lengths.empty() && static_cast<double>(j) >= s.lengths[static_cast<std::size_t>(q.n)];
    if (is_behind || is_over) break;  // and so are all after it
    const std::size_t key = s.key_at(q.n, j, kv_head);
    double sum = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(s.head_size); ++c) sum += queries[query + c] * keys[key + c];
    scores.push_back(s.scale * sum);
  }
  return scores;
}

inline bool is_kept(const AttentionSettings& s, Query q, std::int64_t j) {
  const auto n = static_cast<std::int64_t>(s.scalars.first_example) + q.n;
  const auto element = static_cast<std::uint64_t>(((n * s.heads + q.h) * s.length + q.t) * s.keys() + j);
  const auto key = static_cast<std::uint64_t>(s.key);
  return s.dropout == 0 || ops::dropout_keeps(ops::dropout_word(s.scalars.seed, s.scalars.step, key, element), s.dropout);
}

}  // namespace detail

// `queries` and `keys` are the same numbers where they are not apart.
inline PlainAttention plain_attention(const AttentionSettings& s, const std::vector<double>& queries,
                                      const std::vector<double>& keys) {
  const auto count = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  PlainAttention result{.y = std::vector<double>(count(s.rows() * s.width())),
                        .log_sum_exp = std::vector<double>(count(s.rows() * s.heads)),
                        .probabilities = std::vector<double>(count(s.rows() * s.heads * s.keys()))};
  for (std::int64_t i = 0; i < s.rows() * s.heads; ++i) {
    const std::int64_t row = i / s.heads;
    const detail::Query q{.n = row / s.length, .h = i % s.heads, .t = row % s.length};
    const std::vector<double> scores = detail::scores_of_seen_keys(s, queries, keys, q);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    result.log_sum_exp[count(i)] = scores.empty() ? double{std::numeric_limits<float>::lowest()} : std::log(sum);
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(scores.size()); ++j) {
      const double probability = std::exp(scores[count(j)]) / sum;
      result.probabilities[count(i * s.keys() + j)] = probability;
      if (!detail::is_kept(s, q, j)) continue;
      const std::size_t value = s.value_at(q.n, j, q.h / (s.heads / s.kv_heads));
      for (std::size_t c = 0; c < count(s.head_size); ++c)
        result.y[count(i * s.head_size) + c] += probability / (1 - s.dropout) * keys[value + c];
    }
  }
  return result;
}

}  // namespace snug::support
