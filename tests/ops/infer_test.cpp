// What every op makes of its operands.
#include "infer.h"

#include <gtest/gtest.h>

#include "support/messages.h"

namespace snug::ops::testing {
namespace {

const std::string kScalars = "u8[64]";
const std::string kConv = "stride=[1,1], padding=[1,1], dilation=[1,1], groups=1";
const std::string kPool = "kernel=[2,2], stride=[2,2], padding=[0,0]";
const std::string kNorm = "group_size=2, epsilon=1e-05";

TEST(Infer, Convolution) {
  EXPECT_EQ(infer("conv2d", {"f32[2x3x8x9]/channels_last", "f32[4x3x3x3]/channels_last"}, kConv), "f32[2x4x8x9]/channels_last");
  EXPECT_EQ(infer("conv2d", {"f64[2x3x8x9]", "f64[4x3x3x5]", "f64[4]"}, "stride=[2,1], padding=[0,2], dilation=[1,2], groups=1"),
            "f64[2x4x3x5]");
  EXPECT_EQ(infer("conv2d", {"f32[1x4x5x5]", "f32[6x2x1x1]"}, "stride=[1,1], padding=[0,0], dilation=[1,1], groups=2"),
            "f32[1x6x5x5]");
  EXPECT_EQ(infer("conv2d_grad_input", {"f32[2x4x4x4]/channels_last", "f32[4x3x3x3]"},
                  "stride=[2,2], padding=[1,1], dilation=[1,1], groups=1, input_shape=[2,3,8,8]"),
            "f32[2x3x8x8]/channels_last");
  EXPECT_EQ(infer("conv2d_grad_weight", {"f32[2x4x4x4]", "f32[2x3x8x8]"},
                  "stride=[2,2], padding=[1,1], dilation=[1,1], groups=1, kernel=[3,3]"),
            "f32[4x3x3x3]/channels_last");
}

TEST(Infer, ConvolutionGradientsMatchTheirForward) {
  const std::string strided = "stride=[2,2], padding=[1,1], dilation=[1,1], groups=1";
  EXPECT_TRUE(support::mentions(infer("conv2d_grad_input", {"f32[2x4x5x4]", "f32[4x3x3x3]"}, strided + ", input_shape=[2,3,8,8]"),
                                {"conv2d_grad_input", "gradient", "[2x4x5x4]", "[2x4x4x4]"}));
  EXPECT_TRUE(support::mentions(infer("conv2d_grad_weight", {"f32[2x4x4x4]", "f32[2x3x9x8]"}, strided + ", kernel=[3,3]"),
                                {"conv2d_grad_weight", "gradient", "[2x4x4x4]", "[2x4x5x4]"}));
}

TEST(Infer, ConvolutionRefusals) {
  const std::string x = "f32[2x3x8x8]";
  const std::string w = "f32[4x3x3x3]";
  EXPECT_EQ(infer("conv2d", {x}, kConv), "conv2d: got 1 inputs; it takes 2 to 3");
  EXPECT_EQ(infer("conv2d", {"f32[2x3]", w}, kConv), "conv2d: the input is [2x3]; it must have 4 dimensions (N,C,H,W)");
  EXPECT_EQ(infer("conv2d", {x, "f32[4x3]"}, kConv), "conv2d: the weight is [4x3]; it must have 4 dimensions (O,I,H,W)");
  EXPECT_TRUE(
      support::mentions(infer("conv2d", {x, "f32[4x2x3x3]"}, kConv), {"conv2d", "[2x3x8x8]", "1", "groups", "[4x2x3x3]"}));
  EXPECT_EQ(infer("conv2d", {x, w, "f32[3]"}, kConv), "conv2d: the bias is [3]; it must be [4]");
  EXPECT_TRUE(support::mentions(infer("conv2d", {x, w}, "stride=[1,1]"), {"conv2d", "'padding'", "missing"}));
  EXPECT_TRUE(support::mentions(infer("conv2d", {x, w}, "stride=[1], padding=[1,1], dilation=[1,1], groups=1"),
                                {"conv2d", "'stride'", "1", "height"}));
  EXPECT_TRUE(support::mentions(infer("conv2d", {x, w}, "stride=[0,1], padding=[1,1], dilation=[1,1], groups=1"),
                                {"conv2d", "3", "0", "1", "dilation"}));
  EXPECT_TRUE(support::mentions(infer("conv2d", {x, w}, "stride=[1,1], padding=[0,0], dilation=[4,1], groups=1"),
                                {"conv2d", "window", "9", "8", "0"}));
  EXPECT_TRUE(support::mentions(infer("conv2d", {x, w}, "stride=[1,1], padding=[0,0], dilation=[1,1], groups=0"),
                                {"conv2d", "[2x3x8x8]", "0", "groups", "[4x3x3x3]"}));
}

TEST(Infer, BatchNorm) {
  const std::string x = "f32[5x3x8x8]/channels_last";
  const std::string rows = "f32[3x3]";
  EXPECT_EQ(infer("batch_norm_statistics", {x, kScalars}, "group_size=2"),
            "f32[3x3] f32[3x3]");  // the last group has one example
  EXPECT_EQ(infer("batch_norm_statistics", {"f16[5x3]", kScalars}, "group_size=5"), "f32[1x3] f32[1x3]");
  EXPECT_EQ(infer("batch_norm_statistics", {"f64[5x3]", kScalars}, "group_size=9"), "f64[1x3] f64[1x3]");
  EXPECT_EQ(infer("batch_norm_apply", {x, rows, rows, "f32[3]", "f32[3]", kScalars}, kNorm), x);
  EXPECT_EQ(infer("batch_norm_apply", {x, "f32[3]", "f32[3]", "f32[3]", "f32[3]", kScalars}, kNorm), x);  // fixed statistics
  EXPECT_EQ(
      infer("batch_norm_running", {rows, rows, "f32[3]", "f32[3]", kScalars}, "group_size=2, momentum=0.1, batch=5, pixels=64"),
      "f32[3] f32[3]");
  EXPECT_EQ(infer("batch_norm_grad_reduce", {x, x, rows, rows}, kNorm), "f32[3x3] f32[3x3]");
  EXPECT_EQ(infer("batch_norm_grad_input", {x, x, rows, rows, "f32[3]", rows, rows, kScalars}, kNorm), x);
  EXPECT_EQ(infer("batch_norm_grad_fixed", {x, "f32[3]", "f32[3]"}, kNorm), x);
}

TEST(Infer, BatchNormRefusals) {
  const std::string x = "f32[5x3x8x8]";
  const std::string rows = "f32[3x3]";
  const std::vector<std::string> apply{x, rows, rows, "f32[3]", "f32[3]", kScalars};
  EXPECT_EQ(infer("batch_norm_statistics", {"f32[5x3x8]", kScalars}, "group_size=2"),
            "batch_norm_statistics: the input is [5x3x8]; it must be [N,C,H,W] or [N,C]");
  EXPECT_TRUE(support::mentions(infer("batch_norm_statistics", {x, kScalars}, "group_size=0"),
                                {"batch_norm_statistics", "group", "0", "1"}));
  EXPECT_TRUE(support::mentions(infer("batch_norm_statistics", {x, "u8[63]"}, "group_size=2"),
                                {"batch_norm_statistics", "scalar", "u8[63]", "u8[64]"}));
  EXPECT_EQ(infer("batch_norm_apply", {x, "f32[2x3]", rows, "f32[3]", "f32[3]", kScalars}, kNorm),
            "batch_norm_apply: the mean is [2x3]; it must be [3x3]");
  EXPECT_EQ(infer("batch_norm_apply", {x, rows, rows, "f32[4]", "f32[3]", kScalars}, kNorm),
            "batch_norm_apply: the weight is [4]; it must be [3]");
  EXPECT_TRUE(support::mentions(infer("batch_norm_apply", apply, "group_size=2"), {"batch_norm_apply", "'epsilon'", "missing"}));
  EXPECT_EQ(infer("batch_norm_apply", apply, "group_size=2, epsilon=-1.0"), "batch_norm_apply: epsilon -1 is negative");
  EXPECT_TRUE(support::mentions(infer("batch_norm_grad_reduce", {x, x, rows, rows}, "group_size=2"),
                                {"batch_norm_grad_reduce", "'epsilon'", "missing"}));
  EXPECT_TRUE(support::mentions(infer("batch_norm_grad_fixed", {x, "f32[3]", "f32[3]"}, "group_size=2"),
                                {"batch_norm_grad_fixed", "'epsilon'", "missing"}));
  const std::vector<std::string> running{rows, rows, "f32[3]", "f32[3]", kScalars};
  EXPECT_TRUE(support::mentions(infer("batch_norm_running", running, "group_size=2, batch=5, pixels=64"),
                                {"batch_norm_running", "'momentum'", "missing"}));
  EXPECT_EQ(infer("batch_norm_running", running, "group_size=2, momentum=1.5, batch=5, pixels=64"),
            "batch_norm_running: momentum 1.5 is not in [0, 1]");
  EXPECT_EQ(infer("batch_norm_running", running, "group_size=2, momentum=0.1, batch=7, pixels=64"),
            "batch_norm_running: the mean is [3x3]; it must be [4x3]");
  EXPECT_TRUE(support::mentions(infer("batch_norm_running", running, "group_size=2, momentum=0.1, batch=5, pixels=0"),
                                {"batch_norm_running", "dimension", "2", "0", "1"}));
}

TEST(Infer, GroupNorm) {
  const std::string x = "f32[5x6x8x8]/channels_last";
  EXPECT_EQ(infer("group_norm", {x, "f32[6]", "f32[6]"}, "groups=2, epsilon=1e-05"), x + " f32[5x2] f32[5x2]");
  EXPECT_EQ(infer("group_norm_grad_input", {x, x, "f32[5x2]", "f32[5x2]", "f32[6]"}, "groups=2, epsilon=1e-05"), x);
  EXPECT_EQ(infer("group_norm_grad_parameters", {x, x, "f32[5x2]", "f32[5x2]"}, "groups=2, epsilon=1e-05"), "f32[6] f32[6]");
  EXPECT_TRUE(support::mentions(infer("group_norm", {x, "f32[6]", "f32[6]"}, "groups=4, epsilon=1e-05"),
                                {"group_norm", "6", "split", "4"}));
  EXPECT_TRUE(
      support::mentions(infer("group_norm", {x, "f32[6]", "f32[6]"}, "groups=2"), {"group_norm", "'epsilon'", "missing"}));
  EXPECT_TRUE(support::mentions(infer("group_norm_grad_input", {x, x, "f32[5x2]", "f32[5x2]", "f32[6]"}, "groups=2"),
                                {"group_norm_grad_input", "'epsilon'", "missing"}));
}

TEST(Infer, Pooling) {
  const std::string x = "f32[2x3x8x7]/channels_last";
  EXPECT_EQ(infer("max_pool", {x}, kPool), "f32[2x3x4x3]/channels_last");
  EXPECT_EQ(infer("avg_pool", {x}, "kernel=[3,3], stride=[2,2], padding=[1,1]"), "f32[2x3x4x4]/channels_last");
  EXPECT_EQ(infer("max_pool_argmax", {x}, kPool), "u4[2x3x4x3]/channels_last");
  EXPECT_EQ(infer("max_pool_argmax", {x}, "kernel=[5,5], stride=[1,1], padding=[2,2]"), "u8[2x3x8x7]/channels_last");
  EXPECT_EQ(infer("max_pool_grad", {"f32[2x3x4x3]", x}, kPool), x);
  EXPECT_EQ(infer("max_pool_grad_argmax", {"f32[2x3x4x3]", "u4[2x3x4x3]"}, kPool + ", input_shape=[2,3,8,7]"), x);
  EXPECT_EQ(infer("avg_pool_grad", {"f32[2x3x4x3]"}, kPool + ", input_shape=[2,3,8,7]"), x);
  EXPECT_EQ(infer("global_avg_pool", {x}), "f32[2x3]");
  EXPECT_EQ(infer("global_avg_pool_grad", {"f32[2x3]"}, "input_shape=[2,3,8,7]"), x);

  EXPECT_TRUE(support::mentions(infer("max_pool", {x}, "kernel=[2,2], stride=[2,2], padding=[2,0]"),
                                {"max_pool", "padding", "2", "half", "window"}));
  EXPECT_TRUE(support::mentions(infer("max_pool", {x}, "kernel=[9,2], stride=[2,2], padding=[0,0]"),
                                {"max_pool", "window", "9", "8", "0"}));
  EXPECT_TRUE(support::mentions(infer("max_pool", {x}, "kernel=[2], stride=[2,2], padding=[0,0]"), {"max_pool", "stride"}));
  EXPECT_TRUE(support::mentions(infer("max_pool", {x}, "kernel=[2,2], stride=[2,2], padding=[9223372036854775807,0]"),
                                {"max_pool", "9223372036854775807", "2", "half"}));
  EXPECT_TRUE(support::mentions(infer("max_pool_argmax", {"f32[1x1x20x20]"}, "kernel=[17,17], stride=[1,1], padding=[0,0]"),
                                {"max_pool_argmax", "window", "289", "8"}));
  EXPECT_TRUE(support::mentions(infer("max_pool_grad", {"f32[2x3x4x4]", x}, kPool),
                                {"max_pool_grad", "gradient", "[2x3x4x4]", "[2x3x4x3]"}));
}

TEST(Infer, Elementwise) {
  const std::string x = "f32[2x3x8x8]/channels_last";
  EXPECT_EQ(infer("relu", {x}), x);
  EXPECT_EQ(infer("relu_grad", {x, x}), x);
  EXPECT_EQ(infer("sign_bits", {x}), "bit[2x3x8x8]/channels_last");
  EXPECT_EQ(infer("relu_grad_bits", {x, "bit[2x3x8x8]/channels_last"}), x);
  EXPECT_EQ(infer("add", {x, x}), x);
  EXPECT_EQ(infer("dropout", {x, kScalars}, "probability=0.5, key=1"), x);
  EXPECT_TRUE(
      support::mentions(infer("add", {x, "f64[2x3x8x8]"}), {"add", "operands", "f32[2x3x8x8]/channels_last", "f64[2x3x8x8]"}));
  EXPECT_TRUE(
      support::mentions(infer("relu_grad_bits", {x, "bit[2x3x8x7]"}), {"relu_grad_bits", "sign", "[2x3x8x7]", "[2x3x8x8]"}));
  EXPECT_EQ(infer("dropout", {x, kScalars}, "probability=1.0, key=1"), "dropout: probability 1 is not in [0, 1)");
  EXPECT_TRUE(support::mentions(infer("dropout", {x, kScalars}, "probability=0.5"), {"dropout", "'key'", "missing"}));
  EXPECT_EQ(infer("dropout", {"f32[6x2]", kScalars}, "probability=0.5, key=1, rows_per_example=3"), "f32[6x2]");
  EXPECT_EQ(infer("dropout", {"f32[6x2]", kScalars}, "probability=0.5, key=1, rows_per_example=0"), "f32[6x2]");
  EXPECT_TRUE(support::mentions(infer("dropout", {"f32[6x2]", kScalars}, "probability=0.5, key=1, rows_per_example=4"),
                                {"dropout", "f32[6x2]", "4", "rows"}));
  EXPECT_EQ(infer("dropout", {"f32[6x2]", kScalars}, "probability=0.5, key=1, rows_per_example=-1"),
            "dropout: rows_per_example is -1; use 0 or more");
}

TEST(Infer, LinearAndSums) {
  EXPECT_EQ(infer("linear", {"f32[2x5]", "f32[7x5]", "f32[7]"}), "f32[2x7]");
  EXPECT_EQ(infer("linear_grad_input", {"f32[2x7]", "f32[7x5]"}), "f32[2x5]");
  EXPECT_EQ(infer("linear_grad_weight", {"f32[2x7]", "f32[2x5]"}), "f32[7x5]");
  EXPECT_EQ(infer("sum_to_channels", {"f32[2x3x4x4]"}), "f32[3]");
  EXPECT_TRUE(support::mentions(infer("linear", {"f32[2x5]", "f32[7x6]"}), {"linear", "[2x5]", "5", "features", "[7x6]", "6"}));
  EXPECT_TRUE(support::mentions(infer("linear_grad_weight", {"f32[2x7]", "f32[3x5]"}),
                                {"linear_grad_weight", "gradient", "[2x7]", "[3x7]"}));
  EXPECT_TRUE(support::mentions(infer("sum_to_channels", {"f32[2]"}), {"sum_to_channels", "[2]", "dimensions"}));
}

TEST(Infer, ShapesAndLayouts) {
  EXPECT_EQ(infer("reshape", {"f32[2x3x4x4]"}, "shape=[2,48]"), "f32[2x48]");
  EXPECT_EQ(infer("reshape", {"f32[2x3x1x1]/channels_last"}, "shape=[2,3]"), "f32[2x3]");  // one pixel: both orders are one
  EXPECT_EQ(infer("reshape", {"f32[2x1x4x4]/channels_last"}, "shape=[2,16]"), "f32[2x16]");
  EXPECT_EQ(infer("relayout", {"f32[2x3x4x4]/channels_last"}, "channels_last=0"), "f32[2x3x4x4]");
  EXPECT_EQ(infer("relayout", {"f32[2x3x4x4]"}, "channels_last=1"), "f32[2x3x4x4]/channels_last");
  EXPECT_EQ(infer("relayout", {"f32[2x3x4]"}, "channels_last=1"), "f32[2x3x4]/channels_last");
  EXPECT_EQ(infer("shortcut", {"f32[2x3x5x4]"}, "stride=2, channels=6"), "f32[2x6x3x2]");
  EXPECT_EQ(infer("shortcut_grad", {"f32[2x6x3x2]"}, "stride=2, channels=6, input_shape=[2,3,5,4]"),
            "f32[2x3x5x4]/channels_last");
  EXPECT_EQ(infer("copy_to_space", {"bf16[2x3x4x4]/channels_last"}, "host=1"), "bf16[2x3x4x4]/channels_last");
  EXPECT_TRUE(support::mentions(infer("copy_to_space", {"f32[4]"}, "host=2"), {"copy_to_space", "2", "1", "0", "device"}));
  EXPECT_TRUE(
      support::mentions(infer("reshape", {"f32[2x3x4x4]"}, "shape=[2,47]"), {"reshape", "[2x3x4x4]", "96", "become", "[2x47]"}));
  EXPECT_TRUE(support::mentions(infer("reshape", {"f32[2x3x4x4]/channels_last"}, "shape=[2,48]"),
                                {"reshape", "f32[2x3x4x4]/channels_last", "relayout"}));
  EXPECT_TRUE(support::mentions(infer("relayout", {"f32[2x3]"}, "channels_last=1"), {"relayout", "[2x3]", "3", "layouts"}));
  EXPECT_TRUE(support::mentions(infer("shortcut", {"f32[2x3x5x4]"}, "stride=2, channels=2"), {"shortcut", "2", "fewer", "3"}));
  EXPECT_TRUE(support::mentions(infer("shortcut", {"f32[2x3x5x4]"}, "stride=0, channels=6"), {"shortcut", "stride", "0", "1"}));
}

// Told nothing, a gradient of images is channels-last, as in programs from before it could be told.
TEST(Infer, AGradientIsToldTheLayoutOfWhatItCannotSee) {
  const std::string shape = "input_shape=[2,3,8,7]";
  EXPECT_EQ(infer("global_avg_pool_grad", {"f32[2x3]"}, shape), "f32[2x3x8x7]/channels_last");
  EXPECT_EQ(infer("global_avg_pool_grad", {"f32[2x3]"}, shape + ", channels_last=1"), "f32[2x3x8x7]/channels_last");
  EXPECT_EQ(infer("global_avg_pool_grad", {"f32[2x3]"}, shape + ", channels_last=0"), "f32[2x3x8x7]");
  EXPECT_EQ(infer("global_avg_pool_grad", {"f32[2x3]"}, shape + ", channels_last=2"),
            "global_avg_pool_grad: channels_last is 2; it must be 0 or 1");
  EXPECT_EQ(infer("shortcut_grad", {"f32[2x6x3x2]"}, "stride=2, channels=6, input_shape=[2,3,5,4], channels_last=0"),
            "f32[2x3x5x4]");
  // That of a convolution lies as the incoming one does.
  const std::string one = "stride=[1,1], padding=[1,1], dilation=[1,1], groups=1, input_shape=[2,3,5,4]";
  EXPECT_EQ(infer("conv2d_grad_input", {"f32[2x4x5x4]", "f32[4x3x3x3]"}, one), "f32[2x3x5x4]");
  EXPECT_EQ(infer("conv2d_grad_input", {"f32[2x4x5x4]", "f32[4x3x3x3]"}, one + ", channels_last=1"),
            "f32[2x3x5x4]/channels_last");
}

TEST(Infer, LossInputAndUpdate) {
  EXPECT_EQ(infer("softmax_cross_entropy", {"f32[5x10]", "i32[5]", kScalars}, "label_smoothing=0.1"), "f64[3]");
  EXPECT_EQ(infer("softmax_cross_entropy_grad", {"f32[5x10]", "i32[5]", kScalars}, "label_smoothing=0.1"), "f32[5x10]");
  EXPECT_EQ(
      infer("softmax_cross_entropy", {"f32[6x10]", "i32[6]", kScalars, "f32[6]"}, "label_smoothing=0.1, rows_per_example=3"),
      "f64[3]");
  EXPECT_TRUE(
      support::mentions(infer("softmax_cross_entropy", {"f32[6x10]", "i32[6]", kScalars, "f32[5]"}, "label_smoothing=0.1"),
                        {"softmax_cross_entropy", "rows", "[5]", "[6]"}));
  EXPECT_TRUE(
      support::mentions(infer("softmax_cross_entropy", {"f32[6x10]", "i32[6]", kScalars, "f16[6]"}, "label_smoothing=0.1"),
                        {"softmax_cross_entropy", "rows", "f16", "f32"}));
  EXPECT_EQ(infer("softmax_cross_entropy", {"f32[6x10]", "i32[6]", kScalars}, "label_smoothing=0.1, rows_per_example=0"),
            "softmax_cross_entropy: rows_per_example is 0; use at least 1");
  EXPECT_TRUE(support::mentions(infer("softmax_cross_entropy", {"f32[5x10]", "f32[5]", kScalars}, "label_smoothing=0.0"),
                                {"softmax_cross_entropy", "labels", "f32", "i32"}));
  EXPECT_EQ(infer("softmax_cross_entropy", {"f32[5x10]", "i32[5]", kScalars}, "label_smoothing=1.0"),
            "softmax_cross_entropy: label smoothing 1 is not in [0, 1)");

  const std::string image = "mean=[1.0,2.0,3.0], std=[1.0,1.0,1.0], padding=4, augment=1, ";
  EXPECT_EQ(infer("image_input", {"u8[5x3x8x8]/channels_last", kScalars}, image + "bits=64"), "f64[5x3x8x8]/channels_last");
  EXPECT_EQ(infer("image_input", {"u8[5x3x8x8]/channels_last", kScalars}, image + "bits=16"), "f16[5x3x8x8]/channels_last");
  EXPECT_EQ(infer("image_input", {"u8[5x3x8x8]", kScalars}, image + "bits=16, bfloat=1"), "bf16[5x3x8x8]");
  EXPECT_TRUE(support::mentions(infer("image_input", {"u8[5x3x8x8]", kScalars}, image + "bits=8"),
                                {"image_input", "8", "per", "16", "32", "64"}));
  EXPECT_TRUE(support::mentions(infer("image_input", {"f32[5x3x8x8]", kScalars}, image + "bits=32"),
                                {"image_input", "images", "f32", "u8"}));
  EXPECT_TRUE(support::mentions(infer("image_input", {"u8[5x2x8x8]", kScalars}, image + "bits=32"), {"image_input", "std", "2"}));
  EXPECT_TRUE(
      support::mentions(infer("image_input", {"u8[5x3x2x8]", kScalars}, image + "bits=32"), {"image_input", "4", "larger"}));

  EXPECT_EQ(infer("sgd", {"f32[4]", "f32[4]", kScalars, "f32[4]"}, "momentum=0.9, weight_decay=0.0, nesterov=1"),
            "f32[4] f32[4] f32[4]");
  EXPECT_EQ(infer("sgd", {"f32[4]", "f32[4]", kScalars}, "momentum=0.0, weight_decay=0.0, nesterov=0"), "f32[4] f32[4]");
  EXPECT_EQ(infer("sgd", {"bf16[4]", "bf16[4]", kScalars}, "key=5, momentum=0.0, weight_decay=0.0, nesterov=0, stochastic=1"),
            "bf16[4] bf16[4]");
  EXPECT_EQ(infer("sgd", {"bf16[4]", "bf16[4]", kScalars}, "key=-1, momentum=0.0, weight_decay=0.0, nesterov=0, stochastic=1"),
            "sgd: the key -1 is not in 0 to 8388603");
  EXPECT_TRUE(support::mentions(infer("sgd", {"f32[4]", "f32[4]", kScalars}, "momentum=0.0, weight_decay=0.0, nesterov=1"),
                                {"sgd", "Nesterov", "0"}));
  EXPECT_EQ(infer("sgd", {"f32[4]", "f32[4]", kScalars}, "momentum=0.9, weight_decay=0.0, nesterov=1"),
            "sgd: got 3 inputs; it takes 4 to 5");
  EXPECT_EQ(infer("sgd", {"f32[4]", "f32[4]", kScalars, "f32[4]", "f64[2]"}, "momentum=0.9, weight_decay=0.0, nesterov=1"),
            "f32[4] f32[4] f32[4]");
  EXPECT_EQ(infer("sgd", {"f16[4]", "f16[4]", kScalars, "f64[2]"}, "momentum=0.0, weight_decay=0.0, nesterov=0"),
            "f16[4] f16[4]");
  EXPECT_TRUE(
      support::mentions(infer("sgd", {"f32[4]", "f32[4]", kScalars, "f32[4]"}, "momentum=0.0, weight_decay=0.0, nesterov=0"),
                        {"sgd", "norm", "f32[4]", "f64[2]"}));
  EXPECT_EQ(infer("sgd", {"f32[4]", "f32[4]", kScalars}, "momentum=1.0, weight_decay=0.0, nesterov=0"),
            "sgd: momentum 1 is not in [0, 1)");

  const std::string adamw = "beta1=0.9, beta2=0.999, epsilon=1e-08, weight_decay=0.0";
  EXPECT_EQ(infer("adamw", {"f32[4]", "f32[4]", kScalars, "f32[4]", "f32[4]", "f64[1]"}, adamw), "f32[4] f32[4] f32[4] f32[4]");
  EXPECT_EQ(infer("adamw", {"bf16[4]", "bf16[4]", kScalars, "f32[4]", "f32[4]", "f64[1]", "f64[2]"}, adamw),
            "bf16[4] bf16[4] f32[4] f32[4]");
  EXPECT_TRUE(support::mentions(infer("adamw", {"bf16[4]", "bf16[4]", kScalars, "bf16[4]", "f32[4]", "f64[1]"}, adamw),
                                {"adamw", "moments", "bf16[4]", "f32[4]"}));
  EXPECT_TRUE(support::mentions(infer("adamw", {"bf16[4]", "bf16[4]", kScalars, "f16[4]", "f16[4]", "f64[1]"}, adamw),
                                {"adamw", "moments", "bf16[4]", "f16[4]", "f32"}));
  EXPECT_TRUE(support::mentions(infer("adamw", {"f32[4]", "f32[4]", kScalars, "f32[4]", "f32[4]", "f32[1]"}, adamw),
                                {"adamw", "updates", "f32[1]", "f64[1]"}));
  EXPECT_EQ(infer("adamw", {"f32[4]", "f32[4]", kScalars, "f32[4]", "f32[4]", "f64[1]"}, "beta1=1.0" + adamw.substr(9)),
            "adamw: beta1 1 is not in [0, 1)");
  EXPECT_EQ(infer("adamw_scaled", {"f32[4x2]", "f32[4x2]", kScalars, "f16[4x2]", "f16[4x2]", "f32[2]", "f64[1]"}, adamw),
            "f32[4x2] f32[4x2] f16[4x2] f16[4x2] f32[2]");
  EXPECT_TRUE(
      support::mentions(infer("adamw_scaled", {"f32[4]", "f32[4]", kScalars, "f16[4]", "f32[4]", "f32[2]", "f64[1]"}, adamw),
                        {"adamw_scaled", "second", "f32[4]", "f16[4]"}));
  EXPECT_TRUE(
      support::mentions(infer("adamw_scaled", {"f32[4]", "f32[4]", kScalars, "f16[4]", "f16[4]", "f32[1]", "f64[1]"}, adamw),
                        {"adamw_scaled", "scales", "f32[1]", "f32[2]"}));

  EXPECT_EQ(infer("sum_of_squares", {"f16[4x3]"}, ""), "f64[1]");
  EXPECT_EQ(infer("sum_of_squares", {"f16[4x3]", "f64[1]"}, ""), "f64[1]");
  EXPECT_TRUE(support::mentions(infer("sum_of_squares", {"f32[4]", "f32[1]"}, ""), {"sum_of_squares", "f32[1]", "f64[1]"}));
  EXPECT_EQ(infer("clip_factor", {"f64[1]", kScalars}, ""), "f64[2]");
  EXPECT_TRUE(support::mentions(infer("clip_factor", {"f64[2]", kScalars}, ""), {"clip_factor", "squares", "f64[2]", "f64[1]"}));
  EXPECT_EQ(infer("finite_factor", {"f64[3]"}, ""), "f64[2]");
  EXPECT_TRUE(support::mentions(infer("finite_factor", {"f64[1]"}, ""), {"finite_factor", "metrics", "f64[1]", "f64[3]"}));

  EXPECT_EQ(infer("fill", {"f32[4]"}, "value=1.0"), "f32[4]");
  EXPECT_EQ(infer("init_normal", {"f32[4]", kScalars}, "std=0.1, key=3"), "f32[4]");
  EXPECT_EQ(infer("init_uniform", {"f32[4]", kScalars}, "bound=-0.1, key=3"), "init_uniform: bound -0.1 is negative");
}

}  // namespace
}  // namespace snug::ops::testing
