#include "passes/model/choose_recipes.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "ir/op.h"

namespace snug::testing {
namespace {

using frontend::GraphBuilder;

// "r=bits p=argmax ": the recipes of the layers that have a choice.
std::string chosen(Program graph) {
  const Program model = choose_recipes(std::move(graph));
  std::string text;
  for (const Node& node : model.section(SectionKind::forward).nodes) {
    const auto recipe = static_cast<std::size_t>(node.attributes.integer_or(kRecipe, 0));
    if (node.op->gradients.size() > 1) text += node.layer + "=" + std::string(node.op->gradients[recipe].name) + " ";
  }
  return text;
}

template <typename Layers>
std::string on_images(Layers layers, const std::vector<std::string>& frozen = {}) {
  GraphBuilder b("model", 2);
  const ValueId x = b.conv2d("stem", b.features({3, 8, 8}, Layout::channels_last()), {.out_channels = 4, .padding = 1});
  b.softmax_cross_entropy(b.linear("head", b.global_avg_pool("pool", layers(b, x)), 5, {.bias = false}));
  Program graph = std::move(b).finish();
  frontend::freeze(graph, frozen);
  return chosen(graph);
}

ValueId conv(GraphBuilder& b, const std::string& name, ValueId x) { return b.conv2d(name, x, {.out_channels = 4, .padding = 1}); }

TEST(ChooseRecipes, ReluBeforeAConvolutionKeepsItsOutput) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return conv(b, "c", b.relu("r", x)); }), "r=output ");
}

TEST(ChooseRecipes, ReluBeforeAPoolTakesBitsAndThePoolItsArgmax) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return b.max_pool("p", b.relu("r", x)); }), "r=bits p=argmax ");
}

TEST(ChooseRecipes, ReluBeforeAnAveragePoolTakesBits) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return b.relu("r", x); }), "r=bits ");
}

TEST(ChooseRecipes, ReluBeforeAnAdditionTakesBits) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return b.add("sum", x, b.relu("r", x)); }), "r=bits ");
}

TEST(ChooseRecipes, ReluWhoseOutputGoesBothWaysKeepsItForTheConvolution) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) {
              x = b.relu("r", x);
              return b.add("sum", x, conv(b, "c", x));
            }),
            "r=output ");
}

TEST(ChooseRecipes, APoolBehindAKeptValueReadsIt) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) {
              x = b.relu("r", x);
              const ValueId strided = b.conv2d("c", x, {.out_channels = 4, .stride = 2, .padding = 1});
              return b.add("sum", strided, b.max_pool("p", x));
            }),
            "r=output p=input ");
}

TEST(ChooseRecipes, BatchNormBehindAReluKeepsItsInput) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return b.batch_norm("bn", b.relu("r", x)); }), "r=output ");
}

TEST(ChooseRecipes, ReluBeforeDropoutTakesBits) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return conv(b, "c", b.dropout("d", b.relu("r", x), 0.5)); }), "r=bits ");
}

// Each pool's argmax takes an eighth of its input: seven of them are cheaper than the input, nine are not.
TEST(ChooseRecipes, AValueIsDroppedOnlyIfWhatReplacesItIsSmaller) {
  const auto pools = [](int count) {
    return on_images([count](GraphBuilder& b, ValueId x) {
      ValueId sum = x;
      for (int i = 0; i < count; ++i) sum = b.add("sum", sum, b.max_pool("p", x, {.kernel = 3, .stride = 1, .padding = 1}));
      return sum;
    });
  };
  EXPECT_EQ(pools(7), "p=argmax p=argmax p=argmax p=argmax p=argmax p=argmax p=argmax ");
  EXPECT_EQ(pools(9), "p=input p=input p=input p=input p=input p=input p=input p=input p=input ");
}

// An op that can be differentiated from its input or its output, such as a sigmoid; no real one is like that yet.
std::vector<Type> infer_same(const OpCall& call) { return {call.inputs[0]}; }
constexpr std::array<GradientRecipe, 2> kEither{{{.name = "input", .keeps_inputs = 1}, {.name = "output", .keeps_outputs = 1}}};
constexpr OpDef kSigmoid{.name = "sigmoid", .infer = infer_same, .gradients = kEither};

TEST(ChooseRecipes, AValueThatAnotherNodeKeepsCostsNothing) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return conv(b, "c", b.emit("s", kSigmoid, {x}).front()); }), "s=output ");
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return b.emit("s", kSigmoid, {x}).front(); }), "s=input ");
}

// The flattened value lies in the ReLU's bytes, and the linear layer keeps it.
TEST(ChooseRecipes, AViewIsTheValueItself) {
  GraphBuilder b("model", 2);
  const ValueId r = b.relu("r", b.linear("a", b.features({6}), 4));
  b.softmax_cross_entropy(b.linear("head", b.flatten("flat", r), 5));
  EXPECT_EQ(chosen(std::move(b).finish()), "r=output ");
}

TEST(ChooseRecipes, WhereNoGradientFlowsNothingIsKept) {
  EXPECT_EQ(
      on_images([](GraphBuilder& b, ValueId x) { return b.relu("r2", conv(b, "c", b.max_pool("p", b.relu("r", x)))); }, {"stem"}),
      "r=output p=input r2=bits ");  // the first two are not differentiated: their choice means nothing
}

// A convolution keeps its input for its weight's gradient alone.
TEST(ChooseRecipes, AFrozenLayerKeepsNoInput) {
  const auto two = [](GraphBuilder& b, ValueId x) { return conv(b, "c", b.relu("r", x)); };
  EXPECT_EQ(on_images(two), "r=output ");
  EXPECT_EQ(on_images(two, {"c"}), "r=bits ");
  const auto pooled = [](GraphBuilder& b, ValueId x) { return conv(b, "c", b.max_pool("p", b.relu("r", x))); };
  EXPECT_EQ(on_images(pooled, {"c"}), "r=bits p=argmax ");
  // The other reader keeps it all the same.
  const auto branches = [](GraphBuilder& b, ValueId x) {
    x = b.relu("r", x);
    return b.add("sum", conv(b, "c", x), conv(b, "d", x));
  };
  EXPECT_EQ(on_images(branches, {"c"}), "r=output ");
  EXPECT_EQ(on_images(branches, {"c", "d"}), "r=bits ");
}

TEST(ChooseRecipes, AFrozenLinearLayerKeepsNoInput) {
  GraphBuilder b("model", 2);
  const ValueId r = b.relu("r", b.linear("a", b.features({6}), 4));
  b.softmax_cross_entropy(b.linear("head", r, 5));
  Program graph = std::move(b).finish();
  frontend::freeze(graph, {"head.bias"});
  EXPECT_EQ(chosen(graph), "r=output ");
  frontend::freeze(graph, {"head.weight"});
  EXPECT_EQ(chosen(graph), "r=bits ");
}

TEST(ChooseRecipes, LargeWindowsOfAMaxPoolAreNumberedInBytes) {
  EXPECT_EQ(on_images([](GraphBuilder& b, ValueId x) { return b.max_pool("p", x, {.kernel = 5, .stride = 1, .padding = 2}); }),
            "p=argmax ");
}

TEST(ChooseRecipes, WindowsTooLargeToNumberKeepTheInput) {
  GraphBuilder b("model", 2);
  const ValueId x = b.conv2d("c", b.features({3, 20, 20}, Layout::channels_last()), {.out_channels = 4, .padding = 1});
  b.softmax_cross_entropy(b.linear("head", b.flatten("flat", b.max_pool("p", x, {.kernel = 20, .stride = 20})), 5));
  const Program graph = std::move(b).finish();
  EXPECT_EQ(chosen(graph), "p=input ");
  EXPECT_NO_THROW(differentiate(choose_recipes(graph)));
}

TEST(ChooseRecipes, VggKeepsBitsOnlyBeforePoolsAndDropout) {
  EXPECT_EQ(chosen(frontend::build_zoo_model("vgg-16", {.image_size = 32})),
            "features.1=output features.3=bits features.4=argmax features.6=output features.8=bits features.9=argmax "
            "features.11=output features.13=output features.15=bits features.16=argmax "
            "features.18=output features.20=output features.22=bits features.23=argmax "
            "features.25=output features.27=output features.29=bits features.30=argmax classifier.1=bits classifier.4=bits ");
}

TEST(ChooseRecipes, WideResNetKeepsBitsOnlyAtItsEnd) {
  const std::string text = chosen(frontend::build_zoo_model("wrn-10-1", {}));
  EXPECT_EQ(text,
            "group1.block1.relu1=output group1.block1.relu2=output group2.block1.relu1=output group2.block1.relu2=output "
            "group3.block1.relu1=output group3.block1.relu2=output head.relu=bits ");
}

}  // namespace
}  // namespace snug::testing
