#include "frontend/zoo.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/graph_builder.h"
#include "ir/op.h"
#include "support/messages.h"

namespace snug::frontend {
namespace {

std::int64_t count(const std::string& model, const ZooOptions& options = {}) {
  return parameter_count(build_zoo_model(model, options));
}

std::string refusal(const std::string& model, const ZooOptions& options = {}) {
  return support::message_of<UserError>([&] { build_zoo_model(model, options); });
}

const State* find_state(const Program& graph, const std::string& name) {
  const auto found =
      std::find_if(graph.states.begin(), graph.states.end(), [&](const State& state) { return state.name == name; });
  return found == graph.states.end() ? nullptr : &*found;
}

std::int64_t tensors(const Program& graph) {
  return std::count_if(graph.states.begin(), graph.states.end(),
                       [](const State& state) { return state.role == Role::parameter; });
}

// Parameters of a pre-activation network of basic blocks, counted layer by layer.
std::int64_t basic_block_network(std::int64_t blocks, std::int64_t width, std::int64_t classes) {
  std::int64_t total = 3 * 16 * 9;
  std::int64_t in = 16;
  for (const std::int64_t out : {16 * width, 32 * width, 64 * width}) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      total += 2 * in + in * out * 9 + 2 * out + out * out * 9;
      in = out;
    }
  }
  return total + 2 * in + in * classes + classes;
}

std::int64_t bottleneck_network(std::int64_t blocks, std::int64_t classes) {
  std::int64_t total = 3 * 16 * 9;
  std::int64_t in = 16;
  for (const std::int64_t out : {64, 128, 256}) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t mid = out / 4;
      total += (2 * in + in * mid) + (2 * mid + mid * mid * 9) + (2 * mid + mid * out);
      in = out;
    }
  }
  return total + 2 * in + in * classes + classes;
}

TEST(Zoo, ParameterCountsAreThePublishedOnes) {
  EXPECT_EQ(count("wrn-28-2"), 1'456'858);
  EXPECT_EQ(count("resnet-18"), 11'689'512);
  EXPECT_EQ(count("resnet-50"), 25'557'032);
  EXPECT_EQ(count("vgg-16"), 138'357'544);
}

TEST(Zoo, ParameterCountsFollowFromDepthAndWidth) {
  EXPECT_EQ(basic_block_network(4, 2, 10), 1'456'858);  // the formula itself, against the published wrn-28-2
  EXPECT_EQ(count("wrn-10-1"), basic_block_network(1, 1, 10));
  EXPECT_EQ(count("wrn-16-3", {.classes = 100}), basic_block_network(2, 3, 100));
  EXPECT_EQ(count("preresnet-20"), basic_block_network(3, 1, 10));
  EXPECT_EQ(count("preresnet-110"), basic_block_network(18, 1, 10));
  EXPECT_EQ(count("preresnet-29"), bottleneck_network(3, 10));
  EXPECT_EQ(count("preresnet-1001"), bottleneck_network(111, 10));
}

// He et al., Identity Mappings in Deep Residual Networks: ResNet-110 is basic, ResNet-164 and ResNet-1001 are bottlenecks, of 1.7
// and 10.2 million parameters. Depths that are 6n+2 and 9n+2 alike are otherwise basic, so that a series is of one kind.
TEST(Zoo, PreResNetsArePublishedOnesAndSeriesAreOfOneKind) {
  EXPECT_EQ(count("preresnet-164"), bottleneck_network(18, 10));
  EXPECT_NEAR(static_cast<double>(count("preresnet-164")), 1.7e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(count("preresnet-1001")), 10.2e6, 0.2e6);
  for (const std::int64_t depth : {20, 56, 110, 218, 434, 866, 1730})
    EXPECT_EQ(count(fmt::format("preresnet-{}", depth)), basic_block_network((depth - 2) / 6, 1, 10)) << depth;
  for (const std::int64_t depth : {11, 29, 47, 1001})
    EXPECT_EQ(count(fmt::format("preresnet-{}", depth)), bottleneck_network((depth - 2) / 9, 10)) << depth;
  EXPECT_NE(zoo_entries()[1].summary.find("164 and 1001 are bottlenecks"), std::string_view::npos);
}

TEST(Zoo, ParameterCountDependsOnNeitherBatchNorPrecision) {
  EXPECT_EQ(count("wrn-10-1", {.batch = 7, .staged_as_bytes = false}), count("wrn-10-1"));
}

TEST(Zoo, ResNetHasTorchvisionsParameters) {
  const Program resnet18 = build_zoo_model("resnet-18", {.image_size = 64});
  EXPECT_EQ(tensors(resnet18), 62);
  EXPECT_EQ(tensors(build_zoo_model("resnet-50", {.image_size = 64})), 161);
  for (const char* name :
       {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "layer1.0.conv1.weight", "layer1.1.bn2.running_var",
        "layer2.0.downsample.0.weight", "layer2.0.downsample.1.bias", "layer4.1.conv2.weight", "fc.weight", "fc.bias"}) {
    EXPECT_NE(find_state(resnet18, name), nullptr) << name;
  }
  EXPECT_EQ(find_state(resnet18, "layer1.0.downsample.0.weight"), nullptr);
  EXPECT_EQ(find_state(resnet18, "conv1.bias"), nullptr);
  EXPECT_EQ(find_state(resnet18, "layer2.0.downsample.0.weight")->type.shape, Shape({128, 64, 1, 1}));
  EXPECT_EQ(find_state(resnet18, "fc.weight")->type.shape, Shape({1000, 512}));

  const Program resnet50 = build_zoo_model("resnet-50", {.image_size = 64});
  EXPECT_EQ(find_state(resnet50, "layer1.0.downsample.0.weight")->type.shape, Shape({256, 64, 1, 1}));
  EXPECT_EQ(find_state(resnet50, "layer3.5.conv3.weight")->type.shape, Shape({1024, 256, 1, 1}));
}

TEST(Zoo, VggHasTorchvisionsParameters) {
  const Program vgg = build_zoo_model("vgg-16", {});
  EXPECT_EQ(tensors(vgg), 32);
  EXPECT_EQ(find_state(vgg, "features.0.weight")->type.shape, Shape({64, 3, 3, 3}));
  EXPECT_EQ(find_state(vgg, "features.28.bias")->type.shape, Shape({512}));
  EXPECT_EQ(find_state(vgg, "classifier.0.weight")->type.shape, Shape({4096, 25088}));
  EXPECT_EQ(find_state(vgg, "classifier.6.weight")->type.shape, Shape({1000, 4096}));
}

TEST(Zoo, InputIsStagedAsAsked) {
  const Program bytes = build_zoo_model("small-cnn", {.batch = 5});
  EXPECT_EQ(to_string(find_state(bytes, "images")->type), "u8[5x3x32x32]/channels_last");
  EXPECT_EQ(find_state(bytes, "features"), nullptr);
  const Program numbers = build_zoo_model("small-cnn", {.batch = 5, .image_size = 16, .staged_as_bytes = false});
  EXPECT_EQ(to_string(find_state(numbers, "features")->type), "f32[5x3x16x16]/channels_last");
  EXPECT_EQ(find_state(numbers, "images"), nullptr);
  EXPECT_EQ(to_string(find_state(numbers, "labels")->type), "i32[5]");
}

TEST(Zoo, UnknownNamesAreAnsweredWithTheKnownOnes) {
  for (const std::string name :
       {"", "resnet-34", "wrn", "wrn-", "wrn-28", "wrn-28-2-3", "wrn-28-x", "wrn-28-2x", "wrn--28-2", "wrn-28-0", "preresnet",
        "preresnet-110-2", "vgg-16 ", "WRN-28-2", "wrn-99999999999999999999-2"}) {
    EXPECT_TRUE(support::mentions(refusal(name), {"'" + name + "'", "wrn-D-K", "small-cnn", "as in wrn-28-2"})) << refusal(name);
  }
}

TEST(Zoo, MistypedNamesAreAnsweredWithTheNearestOne) {
  for (const auto& [name, meant] : {std::pair<std::string, std::string>{"resnet50", "resnet-50"},
                                    {"VGG16", "vgg-16"},
                                    {"smal_cnn", "small-cnn"},
                                    {"wrn-28", "wrn-28-2"},
                                    {"preresnet110", "preresnet-110"}}) {
    EXPECT_TRUE(support::mentions(refusal(name), {"mean " + meant})) << refusal(name);
  }
  for (const char* name : {"resnet-34", "mobilenet"}) EXPECT_TRUE(refusal(name).ends_with("as in wrn-28-2)")) << refusal(name);
}

TEST(Zoo, ImpossibleDepthsAreAnsweredWithPossibleOnes) {
  EXPECT_TRUE(support::mentions(refusal("wrn-27-2"), {"'wrn-27-2'", "depth 27", "6n+4"}));
  EXPECT_TRUE(support::mentions(refusal("wrn-4-2"), {"'wrn-4-2'", "depth 4", "6n+4"}));
  EXPECT_EQ(refusal("preresnet-21"),
            "'preresnet-21' has depth 21; use 6n+2 (basic blocks: 20, 56, 110, ...) or 9n+2 (bottlenecks: 29, 164, 1001, ...)");
  EXPECT_EQ(refusal("preresnet-2"),
            "'preresnet-2' has depth 2; use 6n+2 (basic blocks: 20, 56, 110, ...) or 9n+2 (bottlenecks: 29, 164, 1001, ...)");
}

TEST(Zoo, ImpossibleOptionsAreRefused) {
  EXPECT_TRUE(support::mentions(refusal("small-cnn", {.batch = 0}), {"0", "examples", "1"}));
  EXPECT_TRUE(support::mentions(refusal("small-cnn", {.classes = 1}), {"1", "classes", "2"}));
  EXPECT_TRUE(support::mentions(refusal("small-cnn", {.classes = -3}), {"-3", "classes", "2"}));
  EXPECT_TRUE(support::mentions(refusal("vgg-16", {.image_size = 16}), {"'features.30'", "0", "max_pool", "window", "2", "1"}));
  EXPECT_TRUE(support::mentions(refusal("small-cnn", {.image_size = -1}), {"'images'", "dimension", "2", "-1", "1"}));
  EXPECT_TRUE(support::mentions(refusal("small-cnn", {.image_size = 2, .staged_as_bytes = false}),
                                {"'pool2'", "2", "max_pool", "window", "1", "0"}));
  EXPECT_EQ(refusal("wrn-10-100000"), "layer 'group3.block1.conv2': shape [6400000x6400000x3x3] has more than 2^48 elements");
}

TEST(Zoo, EveryEntryIsListed) {
  for (const ZooEntry& entry : zoo_entries()) {
    EXPECT_FALSE(entry.summary.empty()) << entry.pattern;
    EXPECT_NE(refusal("").find(entry.pattern), std::string::npos) << entry.pattern;
  }
  EXPECT_GE(zoo_entries().size(), 11U);
}

}  // namespace
}  // namespace snug::frontend
