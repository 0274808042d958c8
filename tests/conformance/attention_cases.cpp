#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/ops.h"
#include "support/plain_attention.h"

namespace snug::conformance {

namespace {

using Kind = OperandSpec::Kind;
using support::AttentionSettings;

OperandSpec numbers(Kind kind, Shape shape, std::vector<double> values) {
  return {.kind = kind, .shape = shape, .numbers = std::move(values)};
}

std::vector<double> waves(std::int64_t count, double step) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(step * static_cast<double>(i) + 0.011 * static_cast<double>(i * i % 1009)));
  return values;
}

// Backward gets what forward would have given: y, log_sum_exp and probabilities belong to queries and keys.
void add_attention(std::vector<OpCase>& cases, const std::string& name, AttentionSettings s) {
  s.scalars = {.seed = 1, .step = 2, .first_example = 3, .valid_examples = static_cast<std::uint32_t>(s.examples)};
  if (s.scale == 1) s.scale = 1 / std::sqrt(static_cast<double>(s.head_size));
  const Shape of_queries{s.rows(), s.query_columns()}, of_keys{s.key_rows(), s.key_columns()}, of_y{s.rows(), s.width()};
  const std::vector<double> keys = waves(of_keys.elements(), 0.37),
                            queries = s.apart() ? waves(of_queries.elements(), 0.41) : keys;
  const support::PlainAttention plain = support::plain_attention(s, queries, keys);
  const OperandSpec q = numbers(Kind::real, of_queries, queries), kv = numbers(Kind::real, of_keys, keys);
  const OperandSpec y = numbers(Kind::real, of_y, plain.y), dy{.shape = of_y};
  const OperandSpec log_sum_exp = numbers(Kind::statistic, {s.rows(), s.heads}, plain.log_sum_exp);
  const OperandSpec probabilities = numbers(Kind::real, {s.rows(), s.heads * s.keys()}, plain.probabilities);
  const OperandSpec scalars{.kind = Kind::scalars, .scalars = s.scalars};
  const auto add = [&](const OpDef& op, std::vector<OperandSpec> operands, double terms, double rounded) {
    if (!s.lengths.empty()) operands.push_back(numbers(Kind::labels, {s.examples}, s.lengths));
    cases.push_back({fmt::format("{}_{}", op.name, name), &op, std::move(operands), s.attributes(), terms, rounded});
  };
  const auto sharing = static_cast<double>(s.heads) / static_cast<double>(s.kv_heads);
  const auto depth = static_cast<double>(s.head_size), length = static_cast<double>(std::max(s.length, s.keys()));
  const double scores = 4 * s.scale * depth;
  // Probabilities and the gradients of scores may be rounded before the products in which they are factors. The latter are as
  // large as the scale.
  const double dropped = 1 / (1 - s.dropout);
  const double terms = 256 + 4 * depth + 4 * sharing * (length + scores);
  const double rounded = 4 * sharing * dropped * std::max(1.0, s.scale);
  if (s.apart()) {
    add(ops::cross_attention, {q, kv, scalars}, 64 + scores + length, dropped);
    add(ops::cross_attention_grad, {dy, q, kv, y, log_sum_exp, scalars}, terms, rounded);
    return;
  }
  add(ops::attention, {q, scalars}, 64 + scores + length, dropped);
  add(ops::attention_probabilities, {q, scalars}, 64 + scores, 0);
  add(ops::attention_grad, {dy, q, y, log_sum_exp, scalars}, terms, rounded);
  add(ops::attention_grad_probabilities, {dy, q, probabilities, scalars}, terms, rounded);
}

struct Step {
  std::int64_t examples, context, heads, kv_heads, head_size;
  double scale = 0;  // 0: by the size of a head
};

void add_step(std::vector<OpCase>& cases, const std::string& name, const Step& s) {
  const double scale = s.scale > 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.head_size));
  const OperandSpec qkv{.shape = {s.examples, (s.heads + 2 * s.kv_heads) * s.head_size}};
  const OperandSpec cache{.shape = {s.examples * s.context, s.kv_heads * s.head_size}};
  cases.push_back({"attention_step_" + name,
                   &ops::attention_step,
                   {qkv, cache, cache, positions_of_rows(s.examples, s.context)},
                   {{"heads", s.heads}, {"kv_heads", s.kv_heads}, {"scale", scale}},
                   64 + 4 * scale * static_cast<double>(s.head_size) + static_cast<double>(s.context)});
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  for (const bool causal : {false, true}) {
    const auto add = [&](const std::string& name, AttentionSettings s) {
      s.causal = causal;
      add_attention(cases, fmt::format("{}_{}", causal ? "causal" : "full", name), s);
    };
    add("small", {.examples = 2, .length = 5, .heads = 2, .kv_heads = 2, .head_size = 3});
    add("one_token", {.examples = 3, .length = 1, .heads = 2, .kv_heads = 1, .head_size = 8});
    add("one_column", {.examples = 2, .length = 7, .heads = 3, .kv_heads = 3, .head_size = 1});
    add("heads_of_64", {.examples = 2, .length = 64, .heads = 2, .kv_heads = 2, .head_size = 64});
    add("odd_length", {.examples = 1, .length = 197, .heads = 2, .kv_heads = 2, .head_size = 32});
    add("grouped", {.examples = 2, .length = 33, .heads = 6, .kv_heads = 2, .head_size = 16});
    add("shared", {.examples = 1, .length = 40, .heads = 4, .kv_heads = 1, .head_size = 80});
    // Tiles of tensor cores: not quite full ones, and head sizes between those they are made for.
    add("tiles_of_64", {.examples = 2, .length = 130, .heads = 4, .kv_heads = 2, .head_size = 64});
    add("tiles_of_96", {.examples = 1, .length = 131, .heads = 2, .kv_heads = 1, .head_size = 88});
    add("tiles_with_all",
        {.examples = 3, .length = 132, .heads = 4, .kv_heads = 2, .head_size = 64, .dropout = 0.1, .lengths = {132, 65, 0}});
    add("heads_of_128", {.examples = 1, .length = 70, .heads = 1, .kv_heads = 1, .head_size = 128});
    // Scores of some hundred, whose exponentials alone are no f32.
    add("sharp", {.examples = 1, .length = 50, .heads = 2, .kv_heads = 2, .head_size = 64, .scale = 8});
    // An example of which nothing is seen, and lengths that are none, as in padding.
    add("lengths",
        {.examples = 5, .length = 35, .heads = 2, .kv_heads = 2, .head_size = 16, .lengths = {35, 17, 0, 2147483647, -5}});
    add("short_lengths", {.examples = 3, .length = 130, .heads = 2, .kv_heads = 1, .head_size = 8, .lengths = {1, 64, 65}});
    add("dropout", {.examples = 3, .length = 21, .heads = 2, .kv_heads = 2, .head_size = 16, .dropout = 0.3, .key = 7});
    add("all", {.examples = 3, .length = 67, .heads = 4, .kv_heads = 2, .head_size = 24, .dropout = 0.2, .lengths = {67, 50, 3}});
  }
  const auto add_cross = [&](const std::string& name, const AttentionSettings& s) { add_attention(cases, name, s); };
  add_cross("small", {.examples = 2, .length = 5, .heads = 2, .kv_heads = 2, .head_size = 3, .key_length = 4});
  add_cross("one_query", {.examples = 3, .length = 1, .heads = 2, .kv_heads = 1, .head_size = 8, .key_length = 9});
  add_cross("one_key", {.examples = 3, .length = 9, .heads = 2, .kv_heads = 1, .head_size = 8, .key_length = 1});
  add_cross("one_column", {.examples = 2, .length = 7, .heads = 3, .kv_heads = 3, .head_size = 1, .key_length = 11});
  add_cross("heads_of_64", {.examples = 2, .length = 40, .heads = 4, .kv_heads = 4, .head_size = 64, .key_length = 200});
  add_cross("fewer_keys", {.examples = 1, .length = 197, .heads = 6, .kv_heads = 2, .head_size = 32, .key_length = 65});
  add_cross("heads_of_128", {.examples = 1, .length = 70, .heads = 1, .kv_heads = 1, .head_size = 128, .key_length = 131});
  add_cross("lengths", {.examples = 5,
                        .length = 35,
                        .heads = 2,
                        .kv_heads = 2,
                        .head_size = 16,
                        .lengths = {70, 17, 0, 2147483647, -5},
                        .key_length = 70});
  add_cross(
      "dropout",
      {.examples = 3, .length = 21, .heads = 2, .kv_heads = 2, .head_size = 16, .dropout = 0.3, .key = 7, .key_length = 33});
  add_cross("all", {.examples = 3,
                    .length = 67,
                    .heads = 4,
                    .kv_heads = 2,
                    .head_size = 24,
                    .dropout = 0.2,
                    .lengths = {132, 50, 3},
                    .key_length = 132});
  add_step(cases, "small", {.examples = 9, .context = 5, .heads = 2, .kv_heads = 2, .head_size = 3});
  add_step(cases, "one_position", {.examples = 3, .context = 1, .heads = 2, .kv_heads = 1, .head_size = 8});
  add_step(cases, "one_column", {.examples = 8, .context = 7, .heads = 3, .kv_heads = 3, .head_size = 1});
  add_step(cases, "heads_of_64", {.examples = 12, .context = 64, .heads = 2, .kv_heads = 2, .head_size = 64});
  add_step(cases, "grouped", {.examples = 10, .context = 33, .heads = 6, .kv_heads = 2, .head_size = 16});
  add_step(cases, "shared", {.examples = 8, .context = 300, .heads = 4, .kv_heads = 1, .head_size = 80});
  add_step(cases, "heads_of_128", {.examples = 7, .context = 130, .heads = 1, .kv_heads = 1, .head_size = 128});
  add_step(cases, "long", {.examples = 2, .context = 1500, .heads = 3, .kv_heads = 3, .head_size = 64});
  add_step(cases, "sharp", {.examples = 8, .context = 50, .heads = 2, .kv_heads = 2, .head_size = 64, .scale = 8});
  return cases;
}

}  // namespace snug::conformance
