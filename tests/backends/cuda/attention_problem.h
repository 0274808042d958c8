// Attentions of all kinds that the kernels in tiles are tried on, and how their results are compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cuda/emulated_block.h"
#include "backends/cuda/sequence/attention_tiles.cuh"
#include "support/plain_attention.h"

namespace snug::backends::cuda {

using emulation::Bfloat;
using emulation::Block;
using emulation::EmulatedCore;
using emulation::Half;
using emulation::Order;
using support::AttentionSettings;

inline std::size_t count(std::int64_t i) { return static_cast<std::size_t>(i); }

// Half the distance of neighbors near one.
template <typename T>
constexpr double kUnit = 0x1p-11;
template <>
constexpr double kUnit<Bfloat> = 0x1p-8;

template <typename T>
std::vector<T> stored(const std::vector<double>& values) {
  std::vector<T> result;
  for (const double value : values) result.push_back(T{T::bits_of(value)});
  return result;
}
template <typename T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> result;
  for (const T value : values) result.push_back(double{value.widened()});
  return result;
}

inline std::vector<double> waves(std::int64_t size, double step) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < size; ++i)
    result.push_back(std::sin(step * static_cast<double>(i) + 0.011 * static_cast<double>(i * i % 1009)));
  return result;
}

// One attention with its operands as a kernel gets them.
template <typename T>
struct Problem {
  AttentionSettings settings;
  launch::AttentionShape shape;
  launch::AttentionRule rule;
  std::vector<std::int32_t> lengths;
  std::vector<T> queries, keys;  // the same numbers where these are not apart
  std::vector<double> wide_queries, wide_keys;
  support::PlainAttention plain;

  explicit Problem(AttentionSettings s) : settings(std::move(s)) {
    settings.scale *= 1 / std::sqrt(static_cast<double>(settings.head_size));
    settings.scalars = {.seed = 1, .step = 2, .first_example = 3, .valid_examples = 2};
    const auto number = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    shape = {.examples = number(settings.examples),
             .length = number(settings.length),
             .key_length = number(settings.keys()),
             .heads = number(settings.heads),
             .kv_heads = number(settings.kv_heads),
             .head_size = number(settings.head_size),
             .query_width = number(settings.query_columns()),
             .key_width = number(settings.key_columns()),
             .first_key_column = settings.apart() ? 0 : number(settings.width()),
             .causal = !settings.apart() && settings.causal};
    for (const double length : settings.lengths) lengths.push_back(static_cast<std::int32_t>(length));
    rule = {.scale = static_cast<float>(settings.scale),
            .lengths = lengths.empty() ? nullptr : lengths.data(),
            .scalars = &settings.scalars,
            .drops = settings.dropout > 0,
            .last_dropped = static_cast<std::uint32_t>(std::max(0.0, std::ceil(settings.dropout * 0x1p32) - 1)),
            .kept = static_cast<float>(1 / (1 - settings.dropout)),
            .key = static_cast<std::uint64_t>(settings.key)};
    keys = stored<T>(waves(settings.key_rows() * settings.key_columns(), 0.37));
    queries = settings.apart() ? stored<T>(waves(settings.rows() * settings.query_columns(), 0.41)) : keys;
    wide_queries = widened(queries);
    wide_keys = widened(keys);
    plain = support::plain_attention(settings, wide_queries, wide_keys);
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  // Calls body.operator()<columns, drops>().
  template <typename Body>
  void with_columns(const Body& body) const {
    const auto with = [&]<int D>() {
      if (rule.drops) return body.template operator()<D, true>();
      return body.template operator()<D, false>();
    };
    if (settings.head_size <= 32) return with.template operator()<32>();
    if (settings.head_size <= 64) return with.template operator()<64>();
    if (settings.head_size <= 96) return with.template operator()<96>();
    return with.template operator()<128>();
  }

  // Of tiles of so many rows.
  std::uint32_t query_blocks(int rows) const { return blocks(rows, settings.length, settings.heads); }
  std::uint32_t key_blocks(int rows) const { return blocks(rows, settings.keys(), settings.kv_heads); }

 private:
  std::uint32_t blocks(int rows, std::int64_t length, std::int64_t heads) const {
    return static_cast<std::uint32_t>((length + rows - 1) / rows * settings.examples * heads);
  }
};

template <typename Kernel, typename Run>
void run_blocks(std::uint32_t blocks, Order order, const Run& run) {
  Block block(kTileThreads, Kernel::kSharedBytes, order);
  for (std::uint32_t number = 0; number < blocks; ++number) block.run(number, run);
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double relative, double absolute,
                        const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool is_near = std::abs(got[i] - expected[i]) <= relative * std::abs(expected[i]) + absolute;  // false for NaN
    if (!is_near && ++wrong <= 3) ADD_FAILURE() << what << " " << i << " is " << got[i] << " instead of " << expected[i];
  }
  EXPECT_EQ(wrong, 0U) << what;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

struct NamedCase {
  const char* name;
  AttentionSettings settings;
};

inline std::vector<NamedCase> attention_shapes() {
  return {{"one_token", {.examples = 3, .length = 1, .heads = 2, .kv_heads = 2, .head_size = 64}},
          {"seven", {.examples = 2, .length = 7, .heads = 1, .kv_heads = 1, .head_size = 64}},
          {"one_tile", {.examples = 1, .length = 64, .heads = 1, .kv_heads = 1, .head_size = 64}},
          {"one_more", {.examples = 1, .length = 65, .heads = 2, .kv_heads = 2, .head_size = 32}},
          {"two_own_tiles", {.examples = 1, .length = 130, .heads = 1, .kv_heads = 1, .head_size = 64}},
          {"two_hundred", {.examples = 1, .length = 200, .heads = 1, .kv_heads = 1, .head_size = 40}},
          {"heads_of_8", {.examples = 1, .length = 66, .heads = 1, .kv_heads = 1, .head_size = 8}},
          {"heads_of_80", {.examples = 1, .length = 130, .heads = 1, .kv_heads = 1, .head_size = 80}},
          {"heads_of_128", {.examples = 1, .length = 130, .heads = 1, .kv_heads = 1, .head_size = 128}},
          // Scores that grow from tile to tile, so that the exponentials' centers move.
          {"sharp", {.examples = 1, .length = 200, .heads = 1, .kv_heads = 1, .head_size = 64, .scale = 20}},
          {"grouped", {.examples = 1, .length = 70, .heads = 4, .kv_heads = 2, .head_size = 64}},
          {"lengths",
           {.examples = 5, .length = 67, .heads = 1, .kv_heads = 1, .head_size = 32, .lengths = {67, 17, 0, 2147483647, -5}}},
          {"dropout", {.examples = 1, .length = 68, .heads = 2, .kv_heads = 1, .head_size = 64, .dropout = 0.3, .key = 7}},
          {"dropout_of_odd_length",
           {.examples = 2, .length = 67, .heads = 2, .kv_heads = 1, .head_size = 24, .dropout = 0.2, .lengths = {67, 50}}}};
}

// Of cross attention: more keys than queries, and fewer.
inline std::vector<NamedCase> cross_attention_shapes() {
  return {
      {"one_query", {.examples = 3, .length = 1, .heads = 2, .kv_heads = 2, .head_size = 64, .key_length = 70}},
      {"one_key", {.examples = 2, .length = 67, .heads = 2, .kv_heads = 1, .head_size = 32, .key_length = 1}},
      {"more_keys", {.examples = 2, .length = 40, .heads = 2, .kv_heads = 1, .head_size = 64, .key_length = 200}},
      {"fewer_keys", {.examples = 1, .length = 200, .heads = 2, .kv_heads = 2, .head_size = 40, .key_length = 65}},
      {"lengths",
       {.examples = 4, .length = 33, .heads = 1, .kv_heads = 1, .head_size = 16, .lengths = {70, 17, 0, -5}, .key_length = 70}},
      {"dropout",
       {.examples = 2, .length = 67, .heads = 2, .kv_heads = 1, .head_size = 64, .dropout = 0.3, .key = 7, .key_length = 36}},
      {"dropout_of_odd_length",
       {.examples = 2, .length = 20, .heads = 2, .kv_heads = 1, .head_size = 24, .dropout = 0.2, .key_length = 67}}};
}

}  // namespace snug::backends::cuda
