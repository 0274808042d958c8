#include "frontend/graph_builder.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "support/messages.h"

namespace snug::frontend {
namespace {

// What the builder says to the wrong layer on an input of 3 channels and 8x8 pixels.
template <typename Build>
std::string refusal(Build build) {
  GraphBuilder b("model", 2);
  const ValueId x = b.features({3, 8, 8}, Layout::channels_last());
  return support::message_of<UserError>([&] { build(b, x); });
}

ValueId flat(GraphBuilder& b, ValueId x) { return b.global_avg_pool("pool", x); }

// What the kernels' 32 bits would cut off, a multiple of 2^32 to zero.
constexpr std::int64_t kBeyond = std::int64_t{1} << 32U;

TEST(GraphBuilder, DimensionsThatKernelsCannotCountAreRefused) {
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.linear("fc", flat(b, x), kBeyond); }),
                                {"'fc'", "dimension", "[4294967296x3]", "2147483647"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.conv2d("c", x, {.out_channels = kBeyond}); }),
                                {"'c'", "dimension", "[4294967296x3x3x3]", "2147483647"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.conv2d("c", x, {.out_channels = 4, .stride = kBeyond}); }),
                                {"'c'", "stride", "4294967296", "2147483647"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.shortcut("s", x, kBeyond, 1); }),
                                {"'s'", "4294967296", "2147483647", "count"}));
}

TEST(GraphBuilder, ShapeErrorsNameTheLayer) {
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.conv2d("c", flat(b, x), {.out_channels = 4}); }),
                                {"'c'", "[2x3]", "convolution"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.conv2d("c", x, {.out_channels = 4, .groups = 2}); }),
                                {"'c'", "3", "split", "2"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.conv2d("c", x, {.out_channels = 4, .groups = 3}); }),
                                {"'c'", "conv2d", "[2x3x8x8]", "3", "groups", "[4x1x3x3]"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.conv2d("c", x, {.out_channels = 4, .kernel = 9}); }),
                                {"'c'", "conv2d", "window", "9", "8", "0"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.conv2d("c", x, {.out_channels = 0}); }),
                                {"'c'", "0", "channels", "3", "1"}));
  EXPECT_EQ(refusal([](auto& b, ValueId x) { b.conv2d("c", x, {.out_channels = 1 << 30, .kernel = 1 << 20}); }),
            "layer 'c': shape [1073741824x3x1048576x1048576] has more than 2^48 elements");
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) {
                                  b.batch_norm("bn", b.reshape("r", x, {2, 3, 64}));
                                }),
                                {"'r'", "reshape", "f32[2x3x8x8]/channels_last", "relayout"}));
  EXPECT_EQ(refusal([](auto& b, ValueId x) { b.batch_norm("bn", x, {.momentum = -0.5}); }),
            "layer 'bn': batch_norm_running: momentum -0.5 is not in [0, 1]");
  EXPECT_EQ(refusal([](auto& b, ValueId x) { b.batch_norm("bn", x, {.epsilon = -1}); }),
            "layer 'bn': batch_norm_apply: epsilon -1 is negative");
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.batch_norm("bn", x, {.group_size = -2}); }),
                                {"'bn'", "batch_norm_statistics", "group", "-2", "1"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.group_norm("gn", x, 2); }),
                                {"'gn'", "group_norm", "3", "split", "2"}));
  EXPECT_TRUE(
      support::mentions(refusal([](auto& b, ValueId x) { b.group_norm("gn", flat(b, x), 3); }), {"'gn'", "[2x3]", "group"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.add("a", x, flat(b, x)); }),
                                {"'a'", "add", "operands", "f32[2x3x8x8]/channels_last", "f32[2x3]"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.max_pool("p", x, {.kernel = 2, .stride = 2, .padding = 2}); }),
                                {"'p'", "max_pool", "2", "half"}));
  EXPECT_TRUE(
      support::mentions(refusal([](auto& b, ValueId x) { b.shortcut("s", x, 2, 1); }), {"'s'", "shortcut", "2", "fewer", "3"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.linear("fc", x, 10); }), {"'fc'", "[2x3x8x8]", "flatten"}));
  EXPECT_TRUE(
      support::mentions(refusal([](auto& b, ValueId x) { b.linear("fc", flat(b, x), 0); }), {"'fc'", "0", "features", "1"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.dropout("d", x, 1.5); }),
                                {"'d'", "dropout", "probability", "1.5", "1", "0"}));
  EXPECT_EQ(refusal([](auto& b, ValueId x) { b.softmax_cross_entropy(x); }),
            "layer 'loss': softmax_cross_entropy: the logits is [2x3x8x8]; it must have 2 dimensions");
}

// The attribute of every node that has it, by layer.
std::string rows_per_example_of(const Program& model) {
  std::string found;
  for (const Node& node : model.section(SectionKind::forward).nodes) {
    if (node.attributes.has("rows_per_example"))
      found += node.layer + "=" + std::to_string(node.attributes.integer("rows_per_example")) + " ";
  }
  return found;
}

TEST(GraphBuilder, WhatDrawsOrLeavesPaddingOutKnowsTheRowsOfAnExample) {
  GraphBuilder b("model", 2);
  ValueId x = b.dropout("plain", b.features({3, 8}), 0.5);
  x = b.dropout("rows", b.relu("relu", b.reshape("reshape", x, {6, 8})), 0.5);
  x = b.batch_norm("norm", x, {.group_size = 1});
  const ValueId table = b.parameter("table", {.dtype = DType::f32, .shape = {6, 8}}, {});
  x = b.add("sum", x, b.dropout("table_alone", b.relu("table_relu", table), 0.5));
  b.softmax_cross_entropy(b.linear("fc", b.dropout("both", x, 0.5), 10));
  const Program model = std::move(b).finish();
  EXPECT_EQ(rows_per_example_of(model), "rows=3 norm=3 norm=3 norm=3 table_alone=0 both=3 loss=3 ");
  for (const Node& node : model.section(SectionKind::forward).nodes) {
    if (node.op == &ops::batch_norm_apply) {
      EXPECT_EQ(node.attributes.integer("group_size"), 3);
    }
  }
}

TEST(GraphBuilder, RowsThatAreNotMadeOfExamplesAreRefused) {
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) {
                                  b.dropout("d", b.reshape("r", flat(b, x), {1, 6}), 0.5);
                                }),
                                {"'d'", "leading", "f32[1x6]", "2"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) {
                                  b.softmax_cross_entropy(b.reshape("r", flat(b, x), {3, 2}));
                                }),
                                {"'labels'", "leading", "i32[3]", "2"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId) { b.input("tokens", {.dtype = DType::i32, .shape = {5}}); }),
                                {"'tokens'", "leading", "i32[5]", "2"}));
}

// DropConnect of kernels that all rows share is the same in all microbatches; of each row's own it is drawn by example.
TEST(GraphBuilder, ConvolutionsOfSequencesWeighTheirTapsBeforeTheyDropSome) {
  GraphBuilder b("model", 2);
  const SequenceConvOptions taps{.heads = 2, .kernel = 3, .drop_connect = 0.1};
  ValueId x = b.reshape("rows", b.features({5, 8}), {10, 8});
  x = b.lightweight_conv("light", x, taps);
  EXPECT_EQ(to_string(b.type_of(x)), "f32[10x8]");
  x = b.dynamic_conv_block("block", x, {.heads = 4, .kernel = 5, .causal = false, .drop_connect = 0.1});
  EXPECT_EQ(to_string(b.type_of(x)), "f32[10x8]");
  b.softmax_cross_entropy(x);
  const Program model = std::move(b).finish();
  EXPECT_EQ(rows_per_example_of(model), "light.drop_connect=0 light=5 block.conv.drop_connect=20 block.conv=5 loss=5 ");
  std::string parameters;
  for (const State& state : model.states) {
    if (state.role == Role::parameter) parameters += state.name + to_string(state.type.shape) + " ";
  }
  EXPECT_EQ(parameters,
            "light.weight[2x3] block.linear1.weight[16x8] block.linear1.bias[16] block.conv.weight_linear.weight[20x8] "
            "block.linear2.weight[8x8] block.linear2.bias[8] ");
  EXPECT_EQ(model.section(SectionKind::forward).in_evaluation.size(), 2U);
}

TEST(GraphBuilder, ConvolutionsOfSequencesNameTheLayerThatTheyRefuse) {
  const auto refused = [](const SequenceConvOptions& options) {
    return refusal([&](auto& b, ValueId x) { b.dynamic_conv("d", flat(b, x), options); });
  };
  EXPECT_TRUE(support::mentions(refused({.heads = 2}), {"'d'", "3", "2", "heads"}));
  EXPECT_TRUE(support::mentions(refused({.kernel = 0}), {"'d'", "0", "taps"}));
  EXPECT_TRUE(support::mentions(refused({.kernel = std::int64_t{1} << 60U}), {"'d'", "1152921504606846976", "taps"}));
  EXPECT_TRUE(support::mentions(refused({.kernel = 4, .causal = false}), {"'d'", "4", "odd"}));
  EXPECT_TRUE(support::mentions(refused({.drop_connect = 1}), {"'d.drop_connect'", "1"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.lightweight_conv("l", x, {}); }), {"'l'", "[2x3x8x8]"}));
}

TEST(GraphBuilder, NamesAreCheckedAndParametersUnique) {
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) { b.relu("my relu", x); }), {"'my relu'", "name", "200"}));
  EXPECT_TRUE(support::mentions(
      refusal([](auto& b, ValueId x) { b.conv2d("c", b.conv2d("c", x, {.out_channels = 3}), {.out_channels = 3}); }),
      {"'c.weight'", "two"}));
  EXPECT_TRUE(
      support::mentions(refusal([](auto& b, ValueId x) { b.relu(std::string(151, 'r'), x); }), {std::string(151, 'r'), "150"}));
  EXPECT_EQ(refusal([](auto& b, ValueId x) { b.relu(std::string(150, 'r'), x); }), "nothing was thrown");
}

TEST(GraphBuilder, AModelEndsWithOneLoss) {
  EXPECT_TRUE(
      support::mentions(refusal([](auto& b, ValueId) { std::move(b).finish(); }), {"'model'", "end", "softmax_cross_entropy"}));
  EXPECT_TRUE(support::mentions(refusal([](auto& b, ValueId x) {
                                  const ValueId logits = b.linear("fc", flat(b, x), 10);
                                  b.softmax_cross_entropy(logits);
                                  b.loss("again", ops::softmax_cross_entropy, {logits}, {});
                                }),
                                {"already", "loss"}));
}

TEST(GraphBuilder, AShortcutThatChangesNothingIsTheInputItself) {
  GraphBuilder b("model", 2);
  const ValueId x = b.features({3, 8, 8}, Layout::channels_last());
  EXPECT_EQ(b.shortcut("s", x, 3, 1), x);
  EXPECT_NE(b.shortcut("s", x, 3, 2), x);
}

TEST(GraphBuilder, FlattenGoesThroughLogicalOrder) {
  GraphBuilder b("model", 2);
  const ValueId x = b.features({3, 4, 4}, Layout::channels_last());
  EXPECT_EQ(to_string(b.type_of(b.flatten("flat", x))), "f32[2x48]");
  const ValueId pixel = b.avg_pool("pool", x, {.kernel = 4, .stride = 4});
  const std::size_t values = b.value_count();
  EXPECT_EQ(to_string(b.type_of(b.flatten("flat2", pixel))), "f32[2x3]");
  EXPECT_EQ(b.value_count(), values + 1);  // one pixel lies in logical order already: a view, nothing moves
}

TEST(GraphBuilder, AugmentedImagesKeepPlainOnesForEvaluation) {
  GraphBuilder augmented("model", 2);
  augmented.images({});
  augmented.softmax_cross_entropy(augmented.linear("fc", augmented.features({5}), 10));
  EXPECT_EQ(std::move(augmented).finish().section(SectionKind::forward).in_evaluation.size(), 1U);
  GraphBuilder plain("model", 2);
  plain.images({.augment = false});
  plain.softmax_cross_entropy(plain.linear("fc", plain.features({5}), 10));
  EXPECT_TRUE(std::move(plain).finish().section(SectionKind::forward).in_evaluation.empty());
}

TEST(Freeze, StopsTrainingByPrefix) {
  GraphBuilder b("model", 2);
  ValueId x = b.conv2d("stem.conv", b.features({3, 8, 8}, Layout::channels_last()), {.out_channels = 4});
  x = b.batch_norm("stem.bn", x);
  b.softmax_cross_entropy(b.linear("head", flat(b, x), 10));
  Program graph = std::move(b).finish();
  const std::int64_t before = parameter_count(graph);
  freeze(graph, {"stem.conv", "head.b"});
  std::string trainable;
  for (const State& state : graph.states) {
    if (state.trainable) trainable += state.name + " ";
  }
  EXPECT_EQ(trainable, "stem.bn.weight stem.bn.bias head.weight ");
  EXPECT_EQ(parameter_count(graph), before);
}

TEST(Freeze, RefusesAPrefixThatNamesNoParameter) {
  GraphBuilder b("model", 2);
  ValueId x = b.batch_norm("bn", b.features({3, 8, 8}, Layout::channels_last()));
  b.softmax_cross_entropy(b.linear("head", flat(b, x), 10));
  Program graph = std::move(b).finish();
  for (const auto& [prefix, nearest] : {std::pair<std::string, std::string>{"heads", "head.weight, head.bias, bn.weight"},
                                        {"bn.running", "bn.weight, bn.bias, head.weight"},
                                        {"bm.weight", "bn.weight, head.weight, bn.bias"},
                                        {"labels", "bn.weight, bn.bias, head.weight"}}) {
    try {
      freeze(graph, {prefix});
      ADD_FAILURE() << prefix << " was accepted";
    } catch (const UserError& error) {
      EXPECT_TRUE(support::mentions(error.what(), {"'" + prefix + "'", "nearest", nearest}));
    }
  }
}

}  // namespace
}  // namespace snug::frontend
