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
}

TEST(Flops, ThatCannotBeCountedAreRefusedNotOverflowed) {
  const std::string wide = "kernel=[1048576,1048576], stride=[1,1], padding=[524288,524288]";
  EXPECT_THROW(flops("max_pool", {"f32[1000000000000x1x1x1]"}, wide), UserError);
  EXPECT_THROW(flops("avg_pool", {"f32[1000000000000x1x1x1]"}, wide), UserError);
  const std::string square = "f32[16777216x16777216]";
  EXPECT_THROW(flops("linear", {square, square}), UserError);
  EXPECT_THROW(flops("linear_grad_input", {square, square}), UserError);
  EXPECT_THROW(flops("linear_grad_weight", {square, square}), UserError);
  EXPECT_THROW(flops("conv2d", {"f32[1x16777216x1x1]", "f32[16777216x16777216x1x1]"},
                     "stride=[1,1], padding=[1000,1000], dilation=[1,1], groups=1"),
               UserError);
}

}  // namespace
}  // namespace snug::ops::testing
