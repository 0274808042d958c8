// What the ops of sequences make of their operands.
#include <gtest/gtest.h>

#include "infer.h"
#include "support/messages.h"

namespace snug::ops::testing {
namespace {

const std::string kScalars = "u8[64]";

TEST(InferSequence, EmbeddingAndPositions) {
  EXPECT_EQ(infer("embedding", {"i32[6]", "f16[100x8]"}), "f16[6x8]");
  EXPECT_EQ(infer("embedding_grad", {"i32[6]", "f32[6x8]"}, "rows=100"), "f32[100x8]");
  EXPECT_EQ(infer("add_positions", {"f32[6x8]", "f32[5x8]"}, "rows_per_example=3"), "f32[6x8]");
  EXPECT_EQ(infer("add_positions_grad", {"f32[6x8]"}, "rows_per_example=3, positions=5"), "f32[5x8]");

  EXPECT_TRUE(support::mentions(infer("embedding", {"f32[6]", "f32[100x8]"}), {"embedding", "indices", "f32", "i32"}));
  EXPECT_TRUE(support::mentions(infer("embedding", {"i32[2x3]", "f32[100x8]"}), {"embedding", "indices", "[2x3]", "1"}));
  EXPECT_TRUE(support::mentions(infer("embedding_grad", {"i32[6]", "f32[5x8]"}, "rows=100"),
                                {"embedding_grad", "gradient", "[5x8]", "[6x8]"}));
  EXPECT_TRUE(support::mentions(infer("add_positions", {"f32[6x8]", "f32[2x8]"}, "rows_per_example=3"),
                                {"add_positions", "3", "table", "2"}));
  EXPECT_EQ(infer("add_positions", {"f32[6x8]", "f32[5x7]"}, "rows_per_example=3"),
            "add_positions: the table is [5x7]; it must be [5x8]");
  EXPECT_TRUE(support::mentions(infer("add_positions", {"f32[6x8]", "f32[5x8]"}, "rows_per_example=4"),
                                {"add_positions", "f32[6x8]", "4", "rows"}));
  EXPECT_EQ(infer("add_positions", {"f32[6x8]", "f32[5x8]"}, "rows_per_example=0"),
            "add_positions: rows_per_example is 0; use at least 1");
  EXPECT_TRUE(support::mentions(infer("add_positions_grad", {"f32[6x8]"}, "rows_per_example=3, positions=2"),
                                {"add_positions_grad", "3", "table", "2"}));
}

TEST(InferSequence, Norms) {
  const std::string x = "bf16[6x8]";
  EXPECT_EQ(infer("layer_norm", {x, "f32[8]", "f32[8]"}, "epsilon=1e-05"), "bf16[6x8] f32[6] f32[6]");
  EXPECT_EQ(infer("layer_norm", {"f64[6x8]", "f64[8]", "f64[8]"}, "epsilon=1e-05"), "f64[6x8] f64[6] f64[6]");
  EXPECT_EQ(infer("layer_norm_grad_input", {x, x, "f32[8]", "f32[6]", "f32[6]"}), x);
  EXPECT_EQ(infer("layer_norm_grad_parameters", {x, x, "f32[6]", "f32[6]"}), "f32[8] f32[8]");
  EXPECT_EQ(infer("rms_norm", {x, "f32[8]"}, "epsilon=1e-05"), "bf16[6x8] f32[6]");
  EXPECT_EQ(infer("rms_norm_grad_input", {x, x, "f32[8]", "f32[6]"}), x);
  EXPECT_EQ(infer("rms_norm_grad_weight", {x, x, "f32[6]"}), "f32[8]");

  EXPECT_EQ(infer("layer_norm", {x, "f32[6]", "f32[8]"}, "epsilon=1e-05"), "layer_norm: the weight is [6]; it must be [8]");
  EXPECT_EQ(infer("layer_norm", {x, "f32[8]", "f32[8]"}, "epsilon=-1.0"), "layer_norm: epsilon -1 is negative");
  EXPECT_EQ(infer("layer_norm", {"f32[2x3x8]", "f32[8]", "f32[8]"}, "epsilon=1e-05"),
            "layer_norm: the input is [2x3x8]; it must have 2 dimensions");
  EXPECT_EQ(infer("layer_norm_grad_input", {x, x, "f32[8]", "f32[8]", "f32[6]"}),
            "layer_norm_grad_input: the mean is [8]; it must be [6]");
  EXPECT_TRUE(support::mentions(infer("rms_norm_grad_weight", {x, "bf16[6x7]", "f32[6]"}),
                                {"rms_norm_grad_weight", "shape", "bf16[6x8]", "bf16[6x7]"}));
}

TEST(InferSequence, GatesAndRotations) {
  EXPECT_EQ(infer("silu", {"f32[6x8]"}), "f32[6x8]");
  EXPECT_EQ(infer("gated_linear_unit", {"f32[6x8]"}, "activation=1"), "f32[6x4]");
  EXPECT_EQ(infer("gated_linear_unit_grad", {"f32[6x4]", "f32[6x8]"}, "activation=2"), "f32[6x8]");
  const std::string pairs = "heads=2, head_size=4, base=10000.0, rows_per_example=3, inverse=0";
  EXPECT_EQ(infer("rotary", {"f32[6x11]"}, pairs), "f32[6x11]");

  EXPECT_TRUE(
      support::mentions(infer("gated_linear_unit", {"f32[6x7]"}, "activation=0"), {"gated_linear_unit", "[6x7]", "halves"}));
  EXPECT_EQ(infer("gated_linear_unit", {"f32[6x8]"}, "activation=3"),
            "gated_linear_unit: activation is 3; it must be 0 (sigmoid), 1 (silu) or 2 (gelu by tanh)");
  EXPECT_TRUE(support::mentions(infer("gated_linear_unit_grad", {"f32[6x8]", "f32[6x8]"}, "activation=0"),
                                {"gated_linear_unit_grad", "gradient", "[6x8]", "[6x4]"}));
  EXPECT_TRUE(support::mentions(infer("rotary", {"f32[6x7]"}, pairs), {"rotary", "2", "heads", "4", "7", "[6x7]"}));
  EXPECT_TRUE(
      support::mentions(infer("rotary", {"f32[6x8]"}, "heads=2, head_size=3, base=10.0, inverse=0"), {"rotary", "head", "3"}));
  EXPECT_TRUE(support::mentions(infer("rotary", {"f32[6x8]"}, "heads=0, head_size=4, base=10.0, inverse=0"),
                                {"rotary", "0", "heads", "1"}));
  EXPECT_EQ(infer("rotary", {"f32[6x8]"}, "heads=1, head_size=4, base=0.0, inverse=0"),
            "rotary: the base 0 is not between 1 and 3.4e38");
  EXPECT_EQ(infer("rotary", {"f32[6x8]"}, "heads=1, head_size=4, base=10.0, inverse=2"),
            "rotary: inverse is 2; it must be 0 or 1");
}

TEST(InferSequence, Convolutions) {
  const std::string x = "bf16[6x8]", taps = "heads=2, kernel=5, causal=0, rows_per_example=3";
  EXPECT_EQ(infer("lightweight_conv", {x, "bf16[2x5]"}, taps), x);
  EXPECT_EQ(infer("lightweight_conv_grad_input", {x, "bf16[2x5]"}, taps), x);
  EXPECT_EQ(infer("lightweight_conv_grad_weight", {x, x}, taps), "bf16[2x5]");
  EXPECT_EQ(infer("dynamic_conv", {x, "bf16[6x10]"}, taps), x);
  EXPECT_EQ(infer("dynamic_conv_grad_input", {x, "bf16[6x10]"}, taps), x);
  EXPECT_EQ(infer("dynamic_conv_grad_weight", {x, x}, taps), "bf16[6x10]");
  EXPECT_EQ(infer("dynamic_conv", {x, "bf16[6x8]"}, "heads=2, kernel=4, causal=1, rows_per_example=6"), x);

  EXPECT_TRUE(support::mentions(infer("lightweight_conv", {x, "bf16[6x10]"}, taps), {"lightweight_conv", "[6x10]", "[2x5]"}));
  EXPECT_TRUE(support::mentions(infer("dynamic_conv", {x, "bf16[2x5]"}, taps), {"dynamic_conv", "[2x5]", "[6x10]"}));
  EXPECT_TRUE(support::mentions(infer("dynamic_conv", {x, "bf16[6x8]"}, "heads=2, kernel=4, causal=0, rows_per_example=6"),
                                {"dynamic_conv", "kernel", "4", "odd"}));
  EXPECT_TRUE(support::mentions(infer("dynamic_conv", {x, "bf16[6x9]"}, "heads=3, kernel=3, causal=0, rows_per_example=6"),
                                {"dynamic_conv", "8", "3", "heads"}));
  EXPECT_TRUE(support::mentions(infer("lightweight_conv", {x, "bf16[2x5]"}, "heads=2, kernel=0, causal=1, rows_per_example=6"),
                                {"lightweight_conv", "kernel", "0"}));
  EXPECT_TRUE(support::mentions(infer("dynamic_conv_grad_weight", {x, "bf16[6x4]"}, taps),
                                {"dynamic_conv_grad_weight", "bf16[6x8]", "bf16[6x4]"}));
  EXPECT_TRUE(support::mentions(infer("lightweight_conv", {x, "bf16[2x5]"}, "heads=2, kernel=5, causal=2, rows_per_example=3"),
                                {"lightweight_conv", "causal", "2", "0 or 1"}));
}

std::string attention(const std::string& numbers) {
  return numbers + ", causal=1, scale=0.5, dropout=0.0, key=1, rows_per_example=3";
}

TEST(InferSequence, Attention) {
  const std::string qkv = "f16[6x24]", y = "f16[6x16]", of = attention("heads=4, kv_heads=1");
  EXPECT_EQ(infer("attention", {qkv, kScalars}, of), "f16[6x16] f32[6x4]");
  EXPECT_EQ(infer("attention", {"f64[6x24]", kScalars, "i32[2]"}, of), "f64[6x16] f64[6x4]");
  EXPECT_EQ(infer("attention_grad", {y, qkv, y, "f32[6x4]", kScalars}, of), qkv);
  EXPECT_EQ(infer("attention_probabilities", {qkv, kScalars, "i32[2]"}, of), "f16[6x12]");
  EXPECT_EQ(infer("attention_grad_probabilities", {y, qkv, "f16[6x12]", kScalars, "i32[2]"}, of), qkv);

  EXPECT_TRUE(support::mentions(infer("attention", {"f32[6x25]", kScalars}, of), {"attention", "25", "6", "queries"}));
  EXPECT_TRUE(support::mentions(infer("attention", {qkv, kScalars}, attention("heads=4, kv_heads=3")),
                                {"attention", "4", "3", "evenly"}));
  EXPECT_TRUE(support::mentions(infer("attention", {qkv, kScalars}, attention("heads=4, kv_heads=0")),
                                {"attention", "4", "heads", "0", "24"}));
  EXPECT_TRUE(support::mentions(infer("attention", {"f32[7x24]", kScalars}, of), {"attention", "f32[7x24]", "3", "rows"}));
  EXPECT_TRUE(support::mentions(infer("attention", {qkv, kScalars, "i32[6]"}, of), {"attention", "lengths", "[6]", "[2]"}));
  EXPECT_TRUE(support::mentions(infer("attention", {qkv, kScalars, "f32[2]"}, of), {"attention", "lengths", "f32", "i32"}));
  EXPECT_TRUE(support::mentions(infer("attention", {qkv, "u8[63]"}, of), {"attention", "scalar", "u8[63]", "u8[64]"}));
  const std::string start = "heads=4, kv_heads=1, rows_per_example=3";
  EXPECT_EQ(infer("attention", {qkv, kScalars}, start + ", causal=2, scale=0.5, dropout=0.0, key=1"),
            "attention: causal is 2; it must be 0 or 1");
  EXPECT_EQ(infer("attention", {qkv, kScalars}, start + ", causal=1, scale=0.5, dropout=1.0, key=1"),
            "attention: dropout 1 is not in [0, 1)");
  EXPECT_EQ(infer("attention", {qkv, kScalars}, start + ", causal=1, scale=0.5, dropout=0.0, key=4194304"),
            "attention: the key 4194304 is not in 0 to 4194303");
  EXPECT_TRUE(support::mentions(infer("attention", {qkv, kScalars}, start + ", causal=1, dropout=0.0, key=1"),
                                {"attention", "'scale'", "missing"}));
  EXPECT_EQ(infer("attention_grad", {y, qkv, y, "f32[6x3]", kScalars}, of),
            "attention_grad: the log_sum_exp is [6x3]; it must be [6x4]");
  EXPECT_TRUE(support::mentions(infer("attention_grad_probabilities", {y, qkv, "f16[6x16]", kScalars}, of),
                                {"attention_grad_probabilities", "qkv", "f16[6x16]", "f16[6x12]"}));
}

TEST(InferSequence, CrossAttention) {
  const std::string rest = ", scale=0.5, dropout=0.0, key=1, rows_per_example=3, key_rows_per_example=5";
  const std::string q = "f16[6x16]", kv = "f16[10x8]", of = "heads=4, kv_heads=1" + rest;
  EXPECT_EQ(infer("cross_attention", {q, kv, kScalars}, of), "f16[6x16] f32[6x4]");
  EXPECT_EQ(infer("cross_attention", {q, kv, kScalars, "i32[2]"}, of), "f16[6x16] f32[6x4]");
  EXPECT_EQ(infer("cross_attention_grad", {q, q, kv, q, "f32[6x4]", kScalars}, of), "f16[6x16] f16[10x8]");

  const auto refused = [&](const std::vector<std::string>& inputs, const std::vector<std::string>& facts) {
    EXPECT_TRUE(support::mentions(infer("cross_attention", inputs, of), facts));
  };
  refused({"f16[6x18]", kv, kScalars}, {"18", "4", "heads"});
  refused({q, "f16[10x12]", kScalars}, {"12", "1", "4", "columns"});
  refused({q, "f16[9x8]", kScalars}, {"9", "5", "2", "examples"});
  refused({q, "bf16[10x8]", kScalars}, {"f16", "bf16"});
  refused({q, kv, kScalars, "i32[10]"}, {"lengths", "[10]", "[2]"});
  EXPECT_TRUE(support::mentions(infer("cross_attention", {q, kv, kScalars}, "heads=4, kv_heads=3" + rest), {"4", "3", "evenly"}));
  EXPECT_TRUE(
      support::mentions(infer("cross_attention_grad", {q, q, kv, q, "f32[6x3]", kScalars}, of), {"log_sum_exp", "[6x4]"}));
}

TEST(InferSequence, LinearCrossEntropy) {
  const std::string of = "label_smoothing=0.1, rows_per_example=3";
  const std::vector<std::string> inputs{"bf16[6x8]", "bf16[100x8]", "i32[6]", kScalars};
  EXPECT_EQ(infer("linear_cross_entropy", inputs, of), "f64[3]");
  EXPECT_EQ(infer("linear_cross_entropy_step", inputs, of), "bf16[100x8] bf16[6x8] f64[3]");
  std::vector<std::string> more = inputs;
  more.emplace_back("bf16[100x8]");
  EXPECT_EQ(infer("linear_cross_entropy_step", more, of + ", accumulate=1"), "bf16[100x8] bf16[6x8] f64[3]");
  more[4] = "f32[6]";
  EXPECT_EQ(infer("linear_cross_entropy", more, of), "f64[3]");

  more[4] = "bf16[6]";
  EXPECT_TRUE(support::mentions(infer("linear_cross_entropy", more, of), {"linear_cross_entropy", "rows", "bf16", "f32"}));
  EXPECT_EQ(infer("linear_cross_entropy", {"f32[6x8]", "f32[100x7]", "i32[6]", kScalars}, of),
            "linear_cross_entropy: the weight is [100x7]; it must be [100x8]");
  EXPECT_EQ(infer("linear_cross_entropy", {"f32[6x8]", "f32[100x8]", "i32[5]", kScalars}, of),
            "linear_cross_entropy: the labels is [5]; it must be [6]");
  EXPECT_TRUE(support::mentions(infer("linear_cross_entropy", {"f32[6x8]", "f32[100x8]", "f32[6]", kScalars}, of),
                                {"linear_cross_entropy", "labels", "f32", "i32"}));
  EXPECT_EQ(infer("linear_cross_entropy", inputs, "label_smoothing=1.0"),
            "linear_cross_entropy: label smoothing 1 is not in [0, 1)");
}

TEST(InferSequence, OpenedAttention) {
  EXPECT_EQ(infer("softmax", {"f32[2x3x4x5]"}), "f32[2x3x4x5]");
  EXPECT_EQ(infer("softmax_grad", {"f32[7]", "f32[7]"}), "f32[7]");
  EXPECT_EQ(infer("batched_product", {"f32[2x3x4]", "f32[2x4x5]"}, "transpose_a=0, transpose_b=0"), "f32[2x3x5]");
  EXPECT_EQ(infer("batched_product", {"f32[2x4x3]", "f32[2x5x4]"}, "transpose_a=1, transpose_b=1"), "f32[2x3x5]");

  EXPECT_TRUE(
      support::mentions(infer("softmax", {"f32[2x3x4x5]/channels_last"}), {"softmax", "f32[2x3x4x5]/channels_last", "relayout"}));
  EXPECT_TRUE(support::mentions(infer("batched_product", {"f32[2x3x4]", "f32[2x5x4]"}, "transpose_a=0, transpose_b=0"),
                                {"batched_product", "factor", "[2x5x4]", "[2x4x4]"}));
  EXPECT_TRUE(support::mentions(infer("batched_product", {"f32[2x3x4]", "f32[3x4x5]"}, "transpose_a=0, transpose_b=0"),
                                {"batched_product", "factor", "[3x4x5]", "[2x4x5]"}));
  EXPECT_TRUE(support::mentions(infer("batched_product", {"f32[3x4]", "f32[4x5]"}, "transpose_a=0, transpose_b=0"),
                                {"batched_product", "factor", "[3x4]", "3"}));
  EXPECT_EQ(infer("batched_product", {"f32[2x3x4]", "f32[2x4x5]"}, "transpose_a=0, transpose_b=2"),
            "batched_product: transpose_b is 2; it must be 0 or 1");
}

}  // namespace
}  // namespace snug::ops::testing
