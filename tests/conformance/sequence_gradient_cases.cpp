#include <fmt/format.h>

#include "conformance/gradient_check.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

using frontend::GraphBuilder;
using Integers = std::vector<std::int32_t>;

constexpr std::int64_t kOne = 1;

ValueId staged(GraphBuilder& b, const std::string& name, std::int64_t count) {
  return b.input(name, {.dtype = DType::i32, .shape = {count}});
}

// Of rows, several for each example: the loss leaves padding out by example.
void loss_of_rows(GraphBuilder& b, ValueId y, std::int64_t examples) {
  weighted_sum_loss(b, b.reshape("examples", y, {examples, b.type_of(y).elements() / examples}));
}

// One value x of three examples of `length` rows.
GradientCase of_rows(const std::string& name, std::int64_t length, std::int64_t columns,
                     const std::function<ValueId(GraphBuilder&, ValueId)>& layer) {
  return {.name = name,
          .build =
              [=](GraphBuilder& b) {
                loss_of_rows(b, layer(b, operand(b, "x", {3 * length, columns})), 3);
              },
          .valid = 2};
}

ValueId rotated(GraphBuilder& b, ValueId x, std::int64_t inverse) {
  return b
      .emit("rotary", ops::rotary, {x},
            {{"heads", kOne * 2}, {"head_size", kOne * 4}, {"base", 50.0}, {"rows_per_example", kOne * 5}, {"inverse", inverse}})
      .front();
}

ValueId gated(GraphBuilder& b, ValueId x, std::int64_t activation) {
  return b.emit("gate", ops::gated_linear_unit, {x}, {{"activation", activation}}).front();
}

struct Attention {
  std::string name;
  std::int64_t length = 5, heads = 2, kv_heads = 2, head_size = 3;
  bool causal = true;
  double dropout = 0;
  Integers lengths = {};  // of three examples; empty: none
  std::int64_t valid = 3;
  std::int64_t key_length = 0;  // of cross attention; 0: attention
};

GradientCase attention(const Attention& a) {
  GradientCase result{.name = a.name,
                      .build =
                          [a](GraphBuilder& b) {
                            Attributes attributes{{"heads", a.heads}, {"kv_heads", a.kv_heads},
                                                  {"scale", 1.3},     {"dropout", a.dropout},
                                                  {"key", kOne},      {"rows_per_example", a.length}};
                            std::vector<ValueId> inputs;
                            if (a.key_length > 0) {
                              attributes.set("key_rows_per_example", a.key_length);
                              inputs = {operand(b, "q", {3 * a.length, a.heads * a.head_size}),
                                        operand(b, "kv", {3 * a.key_length, 2 * a.kv_heads * a.head_size})};
                            } else {
                              attributes.set("causal", kOne * (a.causal ? 1 : 0));
                              inputs = {operand(b, "qkv", {3 * a.length, (a.heads + 2 * a.kv_heads) * a.head_size})};
                            }
                            inputs.push_back(b.scalars());
                            if (!a.lengths.empty()) inputs.push_back(staged(b, "lengths", 3));
                            const OpDef& op = a.key_length > 0 ? ops::cross_attention : ops::attention;
                            loss_of_rows(b, b.emit("attention", op, inputs, attributes).front(), 3);
                          },
                      .valid = a.valid};
  if (!a.lengths.empty()) result.indices = {{"lengths", a.lengths}};
  return result;
}

struct Convolution {
  std::string name;
  std::int64_t length = 5, heads = 2, head_size = 3, kernel = 3;
  bool causal = true;
};

// With kernels that all rows share, or each row's own.
GradientCase convolution(const Convolution& c, bool dynamic) {
  return {.name = (dynamic ? "dynamic_conv_" : "lightweight_conv_") + c.name,
          .build =
              [c, dynamic](GraphBuilder& b) {
                const std::int64_t rows = 3 * c.length;
                const ValueId x = operand(b, "x", {rows, c.heads * c.head_size});
                const ValueId weight = operand(b, "weight", dynamic ? Shape{rows, c.heads * c.kernel} : Shape{c.heads, c.kernel});
                loss_of_rows(b,
                             b.emit("conv", dynamic ? ops::dynamic_conv : ops::lightweight_conv, {x, weight},
                                    {{"heads", c.heads},
                                     {"kernel", c.kernel},
                                     {"causal", kOne * (c.causal ? 1 : 0)},
                                     {"rows_per_example", c.length}})
                                 .front(),
                             3);
              },
          .valid = 2};
}

void add_convolutions(std::vector<GradientCase>& cases) {
  for (const bool dynamic : {false, true}) {
    cases.push_back(convolution({.name = "causal"}, dynamic));
    cases.push_back(convolution({.name = "full", .causal = false}, dynamic));
    cases.push_back(convolution({.name = "of_even_kernel", .heads = 3, .head_size = 1, .kernel = 4}, dynamic));
    cases.push_back(convolution({.name = "of_one_tap", .kernel = 1, .causal = false}, dynamic));
    cases.push_back(convolution({.name = "of_one_row", .length = 1, .heads = 1}, dynamic));
    cases.push_back(convolution({.name = "longer_than_the_example", .length = 2, .kernel = 7}, dynamic));
    cases.push_back(convolution({.name = "full_and_longer", .length = 2, .kernel = 7, .causal = false}, dynamic));
  }
}

struct Classifier {
  std::string name;
  std::int64_t columns = 6, classes = 5;
  double smoothing = 0;
  bool weighted = false;
};

// Three examples of four rows, the last of them padding with a label that is no class; two more rows are ignored.
GradientCase linear_cross_entropy(const Classifier& c) {
  return {
      .name = c.name,
      .build =
          [c](GraphBuilder& b) {
            const ValueId x = operand(b, "x", {12, c.columns}), weight = operand(b, "weight", {c.classes, c.columns});
            std::vector<ValueId> inputs{x, weight, staged(b, "labels", 12), b.scalars()};
            if (c.weighted) inputs.push_back(b.input("weights", {.dtype = DType::f32, .shape = {12}}));
            b.loss("loss", ops::linear_cross_entropy, inputs, {{"label_smoothing", c.smoothing}, {"rows_per_example", kOne * 4}});
          },
      .valid = 2,
      .indices = {{"labels", {4, 0, -100, 1, 2, 2, static_cast<std::int32_t>(c.classes), 3, 1, -1, 99, 0}}}};
}

// Attention opened: products over batches of examples and heads, and a softmax of the scores.
ValueId opened_attention(GraphBuilder& b, ValueId q, ValueId k, ValueId v) {
  const ValueId scores =
      b.emit("scores", ops::batched_product, {q, k}, {{"transpose_a", kOne * 0}, {"transpose_b", kOne}}).front();
  const ValueId p = b.emit("softmax", ops::softmax, {scores}).front();
  return b.emit("sum", ops::batched_product, {p, v}, {{"transpose_a", kOne * 0}, {"transpose_b", kOne * 0}}).front();
}

void add_products(std::vector<GradientCase>& cases) {
  for (const std::int64_t a : {0, 1}) {
    for (const std::int64_t b : {0, 1}) {
      cases.push_back(
          {.name = fmt::format("batched_product_{}_{}", a == 1 ? "transposed" : "plain", b == 1 ? "transposed" : "plain"),
           .build = [a, b](GraphBuilder& builder) {
             const ValueId x = operand(builder, "a", a == 1 ? Shape{3, 4, 2} : Shape{3, 2, 4});
             const ValueId y = operand(builder, "b", b == 1 ? Shape{3, 5, 4} : Shape{3, 4, 5});
             weighted_sum_loss(
                 builder,
                 builder.emit("product", ops::batched_product, {x, y}, {{"transpose_a", a}, {"transpose_b", b}}).front());
           }});
    }
  }
  cases.push_back({.name = "opened_attention", .build = [](GraphBuilder& b) {
                     weighted_sum_loss(b, opened_attention(b, operand(b, "q", {3, 4, 5}), operand(b, "k", {3, 6, 5}),
                                                           operand(b, "v", {3, 6, 2})));
                   }});
}

void add_tokens(std::vector<GradientCase>& cases) {
  const auto tokens = [](const std::string& name, std::int64_t length, std::int64_t positions, const Integers& indices) {
    return GradientCase{
        .name = name,
        .build =
            [=](GraphBuilder& b) {
              const ValueId x =
                  b.emit("embedding", ops::embedding, {staged(b, "tokens", 3 * length), operand(b, "tokens.weight", {5, 4})})
                      .front();
              loss_of_rows(b,
                           b.emit("positions", ops::add_positions, {x, operand(b, "positions.weight", {positions, 4})},
                                  {{"rows_per_example", length}})
                               .front(),
                           3);
            },
        .valid = 2,
        .indices = {{"tokens", indices}}};
  };
  cases.push_back(tokens("tokens_and_positions", 3, 5, {0, 4, 4, 1, 0, 4, -100, 5, 3}));
  cases.push_back(tokens("one_token_each", 1, 1, {2, 2, 0}));
  cases.push_back(tokens("token_that_is_none", 2, 2, {2, -1, 5, 3, 0, 0}));
  cases.push_back(of_rows("positions_added_to_a_value", 4, 3, [](GraphBuilder& b, ValueId x) {
    return b.emit("positions", ops::add_positions, {x, operand(b, "table", {4, 3})}, {{"rows_per_example", kOne * 4}}).front();
  }));
}

void add_norms(std::vector<GradientCase>& cases) {
  for (const std::int64_t columns : {7, 2}) {
    cases.push_back(of_rows(fmt::format("layer_norm_of_{}", columns), 2, columns, [=](GraphBuilder& b, ValueId x) {
      return b
          .emit("norm", ops::layer_norm, {x, operand(b, "weight", {columns}), operand(b, "bias", {columns})}, {{"epsilon", 1e-2}})
          .front();
    }));
  }
  for (const std::int64_t columns : {7, 1}) {
    cases.push_back(of_rows(fmt::format("rms_norm_of_{}", columns), 2, columns, [=](GraphBuilder& b, ValueId x) {
      return b.emit("norm", ops::rms_norm, {x, operand(b, "weight", {columns})}, {{"epsilon", 1e-2}}).front();
    }));
  }
  // The gradient of the stream that goes around a norm is added to the norm's.
  cases.push_back(of_rows("norms_in_a_residual_stream", 2, 5, [](GraphBuilder& b, ValueId x) {
    const ValueId y =
        b.emit("norm1", ops::layer_norm, {x, operand(b, "weight1", {5}), operand(b, "bias1", {5})}, {{"epsilon", 1e-2}}).front();
    const ValueId sum = b.add("sum1", x, b.linear("fc", y, 5));
    return b.add("sum2", sum, b.emit("norm2", ops::rms_norm, {sum, operand(b, "weight2", {5})}, {{"epsilon", 1e-2}}).front());
  }));
}

}  // namespace

std::vector<GradientCase> sequence_gradient_cases() {
  std::vector<GradientCase> cases;
  add_tokens(cases);
  add_norms(cases);
  cases.push_back(of_rows("silu", 2, 5, [](GraphBuilder& b, ValueId x) { return b.emit("silu", ops::silu, {x}).front(); }));
  cases.push_back(of_rows("gated_by_sigmoid", 2, 6, [](GraphBuilder& b, ValueId x) { return gated(b, x, 0); }));
  cases.push_back(of_rows("gated_by_silu", 2, 6, [](GraphBuilder& b, ValueId x) { return gated(b, x, 1); }));
  cases.push_back(of_rows("gated_by_gelu", 2, 6, [](GraphBuilder& b, ValueId x) { return gated(b, x, 2); }));
  cases.push_back(of_rows("rotary", 5, 11, [](GraphBuilder& b, ValueId x) { return rotated(b, x, 0); }));
  cases.push_back(of_rows("rotary_back", 5, 8, [](GraphBuilder& b, ValueId x) { return rotated(b, x, 1); }));
  cases.push_back(
      of_rows("softmax", 2, 5, [](GraphBuilder& b, ValueId x) { return b.emit("softmax", ops::softmax, {x}).front(); }));
  add_products(cases);
  add_convolutions(cases);
  cases.push_back(attention({.name = "attention", .causal = false}));
  cases.push_back(attention({.name = "attention_causal"}));
  cases.push_back(attention({.name = "attention_of_grouped_heads", .heads = 6, .kv_heads = 2, .head_size = 2}));
  cases.push_back(attention({.name = "attention_of_one_token", .length = 1}));
  cases.push_back(attention({.name = "attention_of_one_column", .kv_heads = 1, .head_size = 1}));
  cases.push_back(attention({.name = "attention_with_lengths", .causal = false, .lengths = {5, 3, 0}}));
  cases.push_back(attention({.name = "attention_causal_with_lengths", .kv_heads = 1, .lengths = {2, 1000, -7}, .valid = 2}));
  cases.push_back(attention({.name = "attention_with_dropout", .causal = false, .dropout = 0.4}));
  cases.push_back(attention({.name = "cross_attention", .key_length = 4}));
  cases.push_back(
      attention({.name = "cross_attention_of_grouped_heads", .length = 3, .heads = 4, .kv_heads = 2, .key_length = 7}));
  cases.push_back(attention({.name = "cross_attention_with_lengths", .lengths = {6, 3, 0}, .key_length = 6}));
  cases.push_back(
      attention({.name = "cross_attention_with_dropout", .dropout = 0.4, .lengths = {2, 9, -1}, .valid = 2, .key_length = 3}));
  cases.push_back(attention({.name = "attention_with_all", .heads = 4, .dropout = 0.3, .lengths = {4, 5, 1}}));
  cases.push_back(linear_cross_entropy({.name = "linear_cross_entropy"}));
  cases.push_back(linear_cross_entropy({.name = "linear_cross_entropy_smoothed", .classes = 7, .smoothing = 0.2}));
  cases.push_back(
      linear_cross_entropy({.name = "linear_cross_entropy_of_weighted_rows", .columns = 1, .smoothing = 0.1, .weighted = true}));
  return cases;
}

}  // namespace snug::conformance
