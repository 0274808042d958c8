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
  Scalars scalars = {};

  std::int64_t rows() const { return examples * length; }
  std::int64_t columns() const { return (heads + 2 * kv_heads) * head_size; }
  std::int64_t width() const { return heads * head_size; }

  Attributes attributes() const {
    Attributes result{{"heads", heads}, {"kv_heads", kv_heads}, {"causal", std::int64_t{causal ? 1 : 0}},
                      {"scale", scale}, {"dropout", dropout},   {"key", key}};
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

inline std::vector<double> scores_of_seen_keys(const AttentionSettings& s, const std::vector<double>& qkv, Query q) {
  const std::int64_t kv_head = q.h / (s.heads / s.kv_heads);
  const auto at = [&](std::int64_t t, std::int64_t head, std::int64_t c) {
    return qkv[static_cast<std::size_t>((q.n * s.length + t) * s.columns() + head * s.head_size + c)];
  };
  std::vector<double> scores;
  for (std::int64_t j = 0; j < s.length; ++j) {
    const bool is_behind = s.causal && j > q.t;
    const bool is_over = !s.lengths.empty() && static_cast<double>(j) >= s.lengths[static_cast<std::size_t>(q.n)];
    if (is_behind || is_over) break;  // and so are all after it
    double sum = 0;
    for (std::int64_t c = 0; c < s.head_size; ++c) sum += at(q.t, q.h, c) * at(j, s.heads + kv_head, c);
    scores.push_back(s.scale * sum);
  }
  return scores;
}

inline bool is_kept(const AttentionSettings& s, Query q, std::int64_t j) {
  const auto n = static_cast<std::int64_t>(s.scalars.first_example) + q.n;
  const auto element = static_cast<std::uint64_t>(((n * s.heads + q.h) * s.length + q.t) * s.length + j);
  const auto key = static_cast<std::uint64_t>(s.key);
  return s.dropout == 0 || ops::dropout_keeps(ops::dropout_word(s.scalars.seed, s.scalars.step, key, element), s.dropout);
}

}  // namespace detail

inline PlainAttention plain_attention(const AttentionSettings& s, const std::vector<double>& qkv) {
  const auto count = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  PlainAttention result{.y = std::vector<double>(count(s.rows() * s.width())),
                        .log_sum_exp = std::vector<double>(count(s.rows() * s.heads)),
                        .probabilities = std::vector<double>(count(s.rows() * s.heads * s.length))};
  for (std::int64_t i = 0; i < s.rows() * s.heads; ++i) {
    const std::int64_t row = i / s.heads;
    const detail::Query q{.n = row / s.length, .h = i % s.heads, .t = row % s.length};
    const std::vector<double> scores = detail::scores_of_seen_keys(s, qkv, q);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    result.log_sum_exp[count(i)] = scores.empty() ? double{std::numeric_limits<float>::lowest()} : std::log(sum);
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(scores.size()); ++j) {
      const double probability = std::exp(scores[count(j)]) / sum;
      result.probabilities[count(i * s.length + j)] = probability;
      if (!detail::is_kept(s, q, j)) continue;
      const std::int64_t value_head = s.heads + s.kv_heads + q.h / (s.heads / s.kv_heads);
      const std::int64_t value = (q.n * s.length + j) * s.columns() + value_head * s.head_size;
      for (std::int64_t c = 0; c < s.head_size; ++c)
        result.y[count(i * s.head_size + c)] += probability / (1 - s.dropout) * qkv[count(value + c)];
    }
  }
  return result;
}

}  // namespace snug::support
