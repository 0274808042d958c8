// What each recipe keeps for backward, seen in the program.
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "graphs.h"
#include "ops/ops.h"

namespace snug::testing {
namespace {

Program relu_model() {
  return model_on_vectors([](GraphBuilder& b, ValueId x) { return b.relu("r", b.linear("a", x, 4, {.bias = false})); });
}

Program pool_model() {
  return model_on_images(
      [](GraphBuilder& b, ValueId x) { return b.max_pool("p", b.conv2d("c", x, {.out_channels = 4, .padding = 1})); });
}

TEST(Recipes, ReluFromItsOutput) {
  const Program program = differentiate(relu_model());
  EXPECT_TRUE(contains(backward_of(program), "%d.r = relu_grad(%d.head.2, %r) : "));
  EXPECT_FALSE(contains(print(program), "sign_bits"));
}

TEST(Recipes, ReluFromBits) {
  const Program graph = relu_model();
  const Program program = differentiate(recipes_with(graph, "relu", 1));
  EXPECT_EQ(nodes_of(program, SectionKind::micro, Phase::forward),
            "%a = linear(features@0, a.weight@0) : f32[2x4] activation ; forward a\n"
            "%r = relu(%a) : f32[2x4] activation ; forward r\n"
            "%r.sign = sign_bits(%r) : bit[2x4] activation ; forward r\n"
            "%head = linear(%r, head.weight@0) : f32[2x5] activation ; forward head\n"
            "%loss = softmax_cross_entropy(%head, labels@0, scalars@0) {label_smoothing=0.0} : f64[3] activation ; forward loss\n"
            "metrics@1 = add(metrics@0, %loss) : state ; forward loss\n");
  EXPECT_TRUE(
      contains(backward_of(program), "%d.r = relu_grad_bits(%d.head.2, %r.sign) : f32[2x4] activation_gradient ; backward r\n"));
  EXPECT_FALSE(contains(print(*program.find_section(SectionKind::eval)), "sign_bits"));
}

TEST(Recipes, MaxPoolFromItsInput) {
  const Program program = differentiate(pool_model());
  EXPECT_TRUE(contains(backward_of(program),
                       "%d.p = max_pool_grad(%d.pool, %c) {kernel=[2,2], padding=[0,0], stride=[2,2]} : f32[2x4x8x8]"));
}

TEST(Recipes, MaxPoolFromItsArgmax) {
  const Program graph = pool_model();
  const Program program = differentiate(recipes_with(graph, "max_pool", 1));
  EXPECT_TRUE(contains(
      nodes_of(program, SectionKind::micro, Phase::forward),
      "%p = max_pool(%c) {kernel=[2,2], padding=[0,0], stride=[2,2]} : f32[2x4x4x4]/channels_last activation ; forward p\n"
      "%p.argmax = max_pool_argmax(%c) {kernel=[2,2], padding=[0,0], stride=[2,2]} : u4[2x4x4x4]/channels_last activation ; "
      "forward p\n"));
  EXPECT_TRUE(contains(backward_of(program),
                       "%d.p = max_pool_grad_argmax(%d.pool, %p.argmax) {input_shape=[2,4,8,8], kernel=[2,2], padding=[0,0], "
                       "stride=[2,2]} : f32[2x4x8x8]"));
  EXPECT_FALSE(contains(backward_of(program), "%c)"));
}

TEST(Recipes, DropoutDrawsItsMaskAgain) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    x = b.dropout("drop1", b.linear("a", x, 4, {.bias = false}), 0.25);
    return b.dropout("drop2", x, 0.5);
  });
  const Program program = differentiate(graph);
  // The same op with the same key on the gradient; nothing of the forward pass is read.
  EXPECT_TRUE(contains(backward_of(program),
                       "%d.drop2 = dropout(%d.head.2, scalars@0) {key=2, probability=0.5} : f32[2x4] activation_gradient"));
  EXPECT_TRUE(contains(backward_of(program),
                       "%d.drop1 = dropout(%d.drop2, scalars@0) {key=1, probability=0.25} : f32[2x4] activation_gradient"));
}

TEST(Recipes, ConvolutionMakesTheWeightsGradientFirst) {
  const Program graph = model_on_images([](GraphBuilder& b, ValueId x) {
    x = b.conv2d("stem", x, {.out_channels = 3, .padding = 1});
    return b.conv2d("c", x, {.out_channels = 4, .padding = 1, .bias = true});
  });
  EXPECT_TRUE(ops_of(differentiate(graph), SectionKind::micro, Phase::backward)
                  .ends_with("conv2d_grad_weight add sum_to_channels add conv2d_grad_input conv2d_grad_weight add "));
}

TEST(Recipes, BatchNormGradientGoesThroughTheStatisticsOfTheBatch) {
  const Program graph = model_on_images([](GraphBuilder& b, ValueId x) {
    return b.batch_norm("bn", b.conv2d("c", x, {.out_channels = 4, .padding = 1}), {.group_size = 1});
  });
  const Program program = differentiate(graph);
  EXPECT_TRUE(contains(backward_of(program),
                       "%d.bn.weight_sums, %d.bn.bias_sums = batch_norm_grad_reduce(%d.pool, %c, %bn.mean, %bn.variance) "
                       "{epsilon=1e-05, group_size=1} : "
                       "f32[2x4] activation_gradient, f32[2x4] activation_gradient ; backward bn\n"
                       "%d.bn = sum_to_channels(%d.bn.weight_sums) : f32[4] gradient ; backward bn\n"
                       "bn.weight.grad@1 = add(bn.weight.grad@0, %d.bn) : state ; backward bn\n"
                       "%d.bn.2 = sum_to_channels(%d.bn.bias_sums) : f32[4] gradient ; backward bn\n"
                       "bn.bias.grad@1 = add(bn.bias.grad@0, %d.bn.2) : state ; backward bn\n"
                       "%d.bn.3 = batch_norm_grad_input(%d.pool, %c, %bn.mean, %bn.variance, bn.weight@0, %d.bn.weight_sums, "
                       "%d.bn.bias_sums, scalars@0) "));
  EXPECT_EQ(ops_of(program, SectionKind::micro, Phase::forward),
            "conv2d batch_norm_statistics batch_norm_running batch_norm_apply global_avg_pool linear softmax_cross_entropy add ");
}

// A recipe that reads what it has not declared would make liveness free bytes that backward needs.
TEST(Recipes, CannotReadWhatTheyDoNotKeep) {
  static constexpr GradientRecipe kForgetful{.name = "forgetful"};
  const Program graph = relu_model();
  Section section = graph.section(SectionKind::forward);
  SectionBuilder builder(graph.states, section);
  const Node& relu = graph.section(SectionKind::forward).nodes[1];
  GradientContext context(builder, relu, kForgetful, {ValueId::none()}, {true}, ValueId::none());
  EXPECT_THROW(context.input(0), InternalError);
  EXPECT_THROW(context.output(0), InternalError);
  EXPECT_THROW(context.extra(), InternalError);
  EXPECT_THROW(context.output_gradient(0), InternalError);
  EXPECT_EQ(context.input_type(0).shape, Shape({2, 4}));  // shapes are always known
  const Node& linear = graph.section(SectionKind::forward).nodes[0];
  GradientContext of_linear(builder, linear, kForgetful, {ValueId::none()}, {true, true}, ValueId::none());
  EXPECT_EQ(of_linear.input(1), linear.inputs[1]);  // states are there anyway
}

}  // namespace
}  // namespace snug::testing
