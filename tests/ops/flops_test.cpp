#include <gtest/gtest.h>

#include "infer.h"

namespace snug::ops::testing {
namespace {

std::int64_t flops(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes = "") {
  Program program = call(op, inputs, attributes);
  Section& section = program.sections[0];
  Node& node = section.nodes[0];
  section.value(node.outputs[0]).type = infer_types(*node.op, {types_of(section, node).inputs, node.attributes})[0];
  return count_flops(section, node);
}

const std::string kConv = "stride=[2,2], padding=[1,1], dilation=[1,1], groups=2";

TEST(Flops, AMultiplyAndAnAddAreTwo) {
  // 2 images, 4x4 output pixels, 6 channels, each of 2 input channels (4 in 2 groups) by 3x3
  constexpr std::int64_t kConvolution = 2LL * (2 * 4 * 4 * 6) * (2 * 3 * 3);
  EXPECT_EQ(flops("conv2d", {"f32[2x4x8x8]", "f32[6x2x3x3]"}, kConv), kConvolution);
  EXPECT_EQ(flops("conv2d_grad_input", {"f32[2x6x4x4]", "f32[6x2x3x3]"}, kConv + ", input_shape=[2,4,8,8]"), kConvolution);
  EXPECT_EQ(flops("conv2d_grad_weight", {"f32[2x6x4x4]", "f32[2x4x8x8]"}, kConv + ", kernel=[3,3]"), kConvolution);
  EXPECT_EQ(flops("linear", {"f32[2x5]", "f32[7x5]"}), 2 * 2 * 5 * 7);
  EXPECT_EQ(flops("linear_grad_input", {"f32[2x7]", "f32[7x5]"}), 2 * 2 * 5 * 7);
  EXPECT_EQ(flops("linear_grad_weight", {"f32[2x7]", "f32[2x5]"}), 2 * 2 * 5 * 7);
}

TEST(Flops, OfAttentionCountTheHalfThatACausalOneComputes) {
  // 2 examples of 6 tokens, 4 heads of 8 columns that share 2 of keys; a few operations per pair beside the products
  const auto attention = [](const std::string& op, const std::vector<std::string>& inputs, int causal) {
    const std::string of = "heads=4, kv_heads=2, scale=0.5, dropout=0.1, key=1, rows_per_example=6, causal=";
    return flops(op, inputs, of + std::to_string(causal));
  };
  const std::string qkv = "f32[12x64]", y = "f32[12x32]", scalars = "u8[64]";
  constexpr std::int64_t kAllPairs = 2LL * 4 * 6 * 6, kCausalPairs = 2LL * 4 * 6 * 7 / 2;
  for (const auto& [causal, pairs] : {std::pair(0, kAllPairs), std::pair(1, kCausalPairs)}) {
    EXPECT_EQ(attention("attention", {qkv, scalars}, causal), pairs * (2 * 2 * 8 + 5));
    EXPECT_EQ(attention("attention_probabilities", {qkv, scalars}, causal), pairs * (2 * 8 + 5));
    EXPECT_EQ(attention("attention_grad", {y, qkv, y, "f32[12x4]", scalars}, causal), pairs * (5 * 2 * 8 + 6));
    EXPECT_EQ(attention("attention_grad_probabilities", {y, qkv, "f32[12x24]", scalars}, causal), pairs * (4 * 2 * 8 + 4));
  }
}

TEST(Flops, OfCrossAttentionCountEveryQueryWithEveryKey) {
  // 2 examples of 6 queries and 5 keys, otherwise as above
  const std::string of = "heads=4, kv_heads=2, scale=0.5, dropout=0.1, key=1, rows_per_example=6, key_rows_per_example=5";
  const std::string q = "f32[12x32]", kv = "f32[10x32]", scalars = "u8[64]";
  constexpr std::int64_t kPairs = 2LL * 4 * 6 * 5;
  EXPECT_EQ(flops("cross_attention", {q, kv, scalars}, of), kPairs * (2 * 2 * 8 + 5));
  EXPECT_EQ(flops("cross_attention_grad", {q, q, kv, q, "f32[12x4]", scalars}, of), kPairs * (5 * 2 * 8 + 6));
}

TEST(Flops, OfAClassifierWithItsLossAreThoseOfItsProducts) {
  const std::vector<std::string> inputs{"f32[6x8]", "f32[100x8]", "i32[6]", "u8[64]"};
  EXPECT_EQ(flops("linear_cross_entropy", inputs, "label_smoothing=0.0"), 6 * 100 * (2 * 8 + 5));
  EXPECT_EQ(flops("linear_cross_entropy_step", inputs, "label_smoothing=0.0"), 6 * 100 * (3 * 2 * 8 + 5));
  const std::string taps = "heads=2, kernel=3, causal=1, rows_per_example=3";
  EXPECT_EQ(flops("lightweight_conv", {"f32[6x8]", "f32[2x3]"}, taps), 2 * 6 * 8 * 3);
  EXPECT_EQ(flops("lightweight_conv_grad_weight", {"f32[6x8]", "f32[6x8]"}, taps), 2 * 6 * 8 * 3);
  EXPECT_EQ(flops("dynamic_conv", {"f32[6x8]", "f32[6x6]"}, taps), 2 * 6 * 8 * 3);
  EXPECT_EQ(flops("dynamic_conv_grad_input", {"f32[6x8]", "f32[6x6]"}, taps), 2 * 6 * 8 * 3);
  EXPECT_EQ(flops("batched_product", {"f32[3x4x5]", "f32[3x5x6]"}, "transpose_a=0, transpose_b=0"), 2 * 3 * 4 * 5 * 6);
  EXPECT_EQ(flops("batched_product", {"f32[3x5x4]", "f32[3x6x5]"}, "transpose_a=1, transpose_b=1"), 2 * 3 * 4 * 5 * 6);
}

TEST(Flops, OfPoolingCountTheWindows) {
  const std::string pool = "kernel=[3,3], stride=[2,2], padding=[1,1]";
  EXPECT_EQ(flops("max_pool", {"f32[2x4x8x8]"}, pool), 2 * 4 * 4 * 4 * 9);
  EXPECT_EQ(flops("avg_pool", {"f32[2x4x8x8]"}, pool), 2 * 4 * 4 * 4 * 9);
  EXPECT_EQ(flops("max_pool_grad", {"f32[2x4x4x4]", "f32[2x4x8x8]"}, pool), 2 * 4 * 4 * 4 * 9);
  EXPECT_EQ(flops("avg_pool_grad", {"f32[2x4x4x4]"}, pool + ", input_shape=[2,4,8,8]"), 2 * 4 * 4 * 4 * 9);
}

TEST(Flops, OfMovingBytesAreNone) {
  EXPECT_EQ(flops("reshape", {"f32[2x3]"}, "shape=[6]"), 0);
  EXPECT_EQ(flops("copy_to_space", {"f32[2x3]"}, "host=0"), 0);
  EXPECT_EQ(flops("embedding", {"i32[2]", "f32[5x3]"}), 0);
}

TEST(Flops, ThatCannotBeCountedAreRefusedNotOverflowed) {
  const std::string wide = "kernel=[1048576,1048576], stride=[1,1], padding=[524288,524288]";
  EXPECT_THROW(flops("max_pool", {"f32[1000000000000x1x1x1]"}, wide), UserError);
  EXPECT_THROW(flops("avg_pool", {"f32[1000000000000x1x1x1]"}, wide), UserError);
  const std::string square = "f32[16777216x16777216]";
  EXPECT_THROW(flops("linear", {square, square}), UserError);
  EXPECT_THROW(flops("linear_grad_input", {square, square}), UserError);
  EXPECT_THROW(flops("linear_grad_weight", {square, square}), UserError);
  EXPECT_THROW(flops("linear_cross_entropy", {square, square, "i32[16777216]", "u8[64]"}, "label_smoothing=0.0"), UserError);
  EXPECT_THROW(flops("attention", {"f32[281474976710656x1]", "u8[64]"},
                     "heads=1, kv_heads=1, causal=1, scale=1.0, dropout=0.0, key=1, rows_per_example=281474976710656"),
               UserError);
  EXPECT_THROW(flops("conv2d", {"f32[1x16777216x1x1]", "f32[16777216x16777216x1x1]"},
                     "stride=[1,1], padding=[1000,1000], dilation=[1,1], groups=1"),
               UserError);
}

}  // namespace
}  // namespace snug::ops::testing
