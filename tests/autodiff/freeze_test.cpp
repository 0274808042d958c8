// Frozen parameters cost nothing but their own bytes.
#include <string>

#include <gtest/gtest.h>

#include "autodiff/gradient_flow.h"
#include "frontend/zoo.h"
#include "graphs.h"

namespace snug::testing {
namespace {

Program frozen(const std::string& model, const std::vector<std::string>& prefixes) {
  Program graph = frontend::build_zoo_model(model, {.batch = 2});
  frontend::freeze(graph, prefixes);
  return graph;
}

Program three_layers(const std::vector<std::string>& prefixes) {
  Program graph = model_on_images([](GraphBuilder& b, ValueId x) {
    for (const char* name : {"a", "b", "c"}) x = b.conv2d(name, x, {.out_channels = 3, .padding = 1, .bias = true});
    return x;
  });
  frontend::freeze(graph, prefixes);
  return graph;
}

TEST(Freeze, GivesNoGradient) {
  const Program program = differentiate(frozen("wrn-10-1", {"stem", "group1"}));
  for (const State& state : program.states) {
    const bool is_frozen = state.name.starts_with("stem") || state.name.starts_with("group1");
    EXPECT_TRUE(!is_frozen || state.role == Role::parameter || state.role == Role::statistic) << state.name;
    if (state.role != Role::parameter) continue;
    EXPECT_EQ(state.trainable, !is_frozen) << state.name;
    EXPECT_EQ(program.find_state(state.name + ".grad").valid(), !is_frozen) << state.name;
  }
}

TEST(Freeze, AllButTheClassifierLeavesOnlyItsGradient) {
  const Program program = differentiate(frozen("wrn-28-2", {"stem", "group", "head.bn"}));
  EXPECT_EQ(ops_of(program, SectionKind::micro, Phase::backward),
            "softmax_cross_entropy_grad linear_grad_weight add sum_to_channels add ");
}

TEST(Freeze, InTheMiddleLetsTheGradientThrough) {
  const std::string backward = backward_of(differentiate(three_layers({"b"})));
  EXPECT_TRUE(contains(backward, "= conv2d_grad_input(%d.c.3, b.weight@0)"));
  EXPECT_FALSE(contains(backward, "b.weight.grad"));
  EXPECT_FALSE(contains(backward, "b.bias.grad"));
  EXPECT_EQ(ops_of(differentiate(three_layers({"b"})), SectionKind::micro, Phase::backward),
            "softmax_cross_entropy_grad linear_grad_weight add linear_grad_input global_avg_pool_grad "
            "conv2d_grad_weight add sum_to_channels add conv2d_grad_input "  // c
            "conv2d_grad_input "                                             // b
            "conv2d_grad_weight add sum_to_channels add ");                  // a, whose input needs none
}

TEST(Freeze, OfTheFirstLayersEndsBackwardThere) {
  EXPECT_EQ(ops_of(differentiate(three_layers({"a", "b"})), SectionKind::micro, Phase::backward),
            "softmax_cross_entropy_grad linear_grad_weight add linear_grad_input global_avg_pool_grad "
            "conv2d_grad_weight add sum_to_channels add ");
}

TEST(Freeze, OfOneOfTwoParametersKeepsTheOthersGradient) {
  EXPECT_TRUE(ops_of(differentiate(three_layers({"a.weight", "b", "c"})), SectionKind::micro, Phase::backward)
                  .ends_with("conv2d_grad_input conv2d_grad_input sum_to_channels add "));
}

TEST(Freeze, OfEverythingLeavesNoBackwardAndNoGradient) {
  const Program program = differentiate(frozen("small-cnn", {""}));
  EXPECT_EQ(backward_of(program), "");
  for (const State& state : program.states) EXPECT_NE(state.role, Role::gradient) << state.name;
  EXPECT_TRUE(contains(print(*program.find_section(SectionKind::micro)), "metrics@1 = add(metrics@0, %loss)"));
}

TEST(GradientFlow, ReachesWhatStandsBetweenAParameterAndTheLoss) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    const ValueId r = b.relu("before", x);  // no parameter reaches it
    const ValueId a = b.linear("a", r, 4, {.bias = false});
    b.relu("beside", a);  // the loss does not depend on it
    return b.relu("between", a);
  });
  const GradientFlow flow = gradient_flow(graph.states, graph.section(SectionKind::forward));
  std::string active;
  for (std::size_t i = 0; i < graph.section(SectionKind::forward).nodes.size(); ++i) {
    if (flow.node_active[i]) active += graph.section(SectionKind::forward).nodes[i].layer + " ";
  }
  EXPECT_EQ(active, "a between head loss ");
  std::string reached;
  for (std::size_t i = 0; i < graph.section(SectionKind::forward).values.size(); ++i) {
    if (flow.reached[i]) reached += graph.section(SectionKind::forward).values[i].name + " ";
  }
  EXPECT_EQ(reached, "a.weight a between head.weight head ");
}

}  // namespace
}  // namespace snug::testing
