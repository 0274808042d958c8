#include "analysis/cost.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/ops.h"

namespace snug {
namespace {

// Two microbatches of two examples, one linear layer of 2 * 2 * 4 * 4 = 64 FLOPs and 32 + 64 + 32 = 128 bytes.
Program two_microbatches() {
  return parse_program(
      "program test batch 4 microbatch 2\n"
      "state x : f32[2x4] input\n"
      "state w : f32[4x4] parameter\n"
      "section micro\n"
      "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n",
      ops::find);
}

TEST(Cost, IsTheLargerOfArithmeticAndTraffic) {
  const Program program = two_microbatches();
  const Section& micro = program.sections[0];
  CostTable costs{.flops_per_second = 64, .bytes_per_second = 1280, .seconds_per_node = 0.5};
  EXPECT_DOUBLE_EQ(node_seconds(costs, micro, micro.nodes[0]), 1.5);
  costs.bytes_per_second = 32;
  EXPECT_DOUBLE_EQ(node_seconds(costs, micro, micro.nodes[0]), 4.5);
}

TEST(Cost, MeasuredTimeComesBeforeRates) {
  const Program program = two_microbatches();
  const Section& micro = program.sections[0];
  const CostTable costs{.measured = {{cost_key(micro, micro.nodes[0]), 7.0}}};
  EXPECT_DOUBLE_EQ(node_seconds(costs, micro, micro.nodes[0]), 7.0);
  EXPECT_DOUBLE_EQ(step_seconds(costs, program), 14.0);
}

TEST(Cost, KeyTellsShapesAndConstantsApart) {
  const Program program = two_microbatches();
  EXPECT_EQ(cost_key(program.sections[0], program.sections[0].nodes[0]), "linear f32[2x4] f32[4x4] -> f32[2x4]");
}

// The linear layer above for another number of examples.
Program linear_of(int examples, const std::string& kernel = "") {
  Program program = parse_program(fmt::format("program test batch {0} microbatch {0}\n"
                                              "state x : f32[{0}x4] input\n"
                                              "state w : f32[4x4] parameter\n"
                                              "section micro\n"
                                              "%a = linear(x@0, w@0) : f32[{0}x4] activation ; forward a\n",
                                              examples),
                                  ops::find);
  program.sections[0].nodes[0].kernel = kernel;
  return program;
}

NodeCost measured(const Program& program, double seconds) {
  NodeCost cost = describe_cost(program.sections[0], program.sections[0].nodes[0]);
  cost.seconds = seconds;
  return cost;
}

double seconds_of(const CostTable& costs, const Program& program) {
  return node_seconds(costs, program.sections[0], program.sections[0].nodes[0]);
}

TEST(Cost, FamilyLeavesTheNumberOfExamplesOpen) {
  const Program two = linear_of(2);
  EXPECT_EQ(cost_family(two.sections[0], two.sections[0].nodes[0]), "linear f32[*x4] f32[*x4] -> f32[*x4]");
}

TEST(Cost, OtherNumbersOfExamplesAreScaledFromTheNearest) {
  const CostTable costs = make_cost_table(std::vector{measured(linear_of(1024), 8.0)});
  EXPECT_DOUBLE_EQ(seconds_of(costs, linear_of(1024)), 8.0);
  EXPECT_DOUBLE_EQ(seconds_of(costs, linear_of(4096)) / 8.0,
                   describe_cost(linear_of(4096).sections[0], linear_of(4096).sections[0].nodes[0]).bytes /
                       describe_cost(linear_of(1024).sections[0], linear_of(1024).sections[0].nodes[0]).bytes)
      << "traffic bound: in proportion to the bytes";
}

TEST(Cost, AKernelsOwnTimeIsKnownForEveryNumberOfExamples) {
  const CostTable costs = make_cost_table(std::vector{measured(linear_of(1024, "fast"), 8.0)});
  const auto known = [&](const Program& program) {
    return is_measured_with_kernel(costs, program.sections[0], program.sections[0].nodes[0]);
  };
  EXPECT_TRUE(known(linear_of(1024, "fast")));
  EXPECT_TRUE(known(linear_of(7, "fast")));
  EXPECT_FALSE(known(linear_of(1024, "slow")));
}

TEST(Cost, BetweenTwoMeasuredSizesLiesBetweenTheirTimes) {
  const CostTable costs = make_cost_table(std::vector{measured(linear_of(4096), 9.0), measured(linear_of(1024), 4.0)});
  const double between = seconds_of(costs, linear_of(2048));
  EXPECT_NEAR(between, 6.0, 0.01) << "half way in logarithms, as sizes go";
  EXPECT_GT(seconds_of(costs, linear_of(8192)), 17.0);
}

Program activation_of(const std::string& shape, const std::string& kernel = "") {
  Program program = parse_program(fmt::format("program test batch 8 microbatch 8\n"
                                              "state x : f32[{0}] input\n"
                                              "section micro\n"
                                              "%a = relu(x@0) : f32[{0}] activation ; forward a\n",
                                              shape),
                                  ops::find);
  program.sections[0].nodes[0].kernel = kernel;
  return program;
}

// [N,T,D] and [N*T,D] for other T, whatever N is.
TEST(Cost, ALengthMeasuredPredictsAnother) {
  const double measured_seconds = 8.0;
  const CostTable costs = make_cost_table(
      std::vector{measured(activation_of("8x512x64"), measured_seconds), measured(activation_of("4096x96"), measured_seconds)});
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("8x128x64")), measured_seconds / 4);
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("8x2048x64")), measured_seconds * 4);
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("2x2048x64")), measured_seconds);
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("1024x96")), measured_seconds / 4);
}

// Every place of a size grows with it: scores of attention are [N,H,T,T].
TEST(Cost, ASizeIsOpenWhereverItStands) {
  const CostTable costs = make_cost_table(std::vector{measured(activation_of("2x4x128x128"), 1.0)});
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("2x4x512x512")), 16.0);
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("2x16x128x128")), 4.0);
  // Two sizes differ, and none of them alike.
  EXPECT_NE(seconds_of(costs, activation_of("2x8x512x256")), 32.0);
}

TEST(Cost, BetweenTwoMeasuredLengthsLiesBetweenTheirTimes) {
  const CostTable costs =
      make_cost_table(std::vector{measured(activation_of("8x1024x64"), 9.0), measured(activation_of("8x256x64"), 4.0)});
  EXPECT_NEAR(seconds_of(costs, activation_of("8x512x64")), 6.0, 1e-9);
}

// What was measured for another number of examples is nearer than for another length; the own kernel nearer than another's.
TEST(Cost, TheNearestRelativeIsAsked) {
  const CostTable costs = make_cost_table(
      std::vector{measured(activation_of("8x512x64", "fast"), 1.0), measured(activation_of("8x128x64", "fast"), 100.0),
                  measured(activation_of("8x512x64", "frugal"), 3.0), measured(activation_of("8x4096x128"), 1000.0)});
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("16x512x64", "fast")), 2.0);
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("8x1024x64", "frugal")), 6.0);
  EXPECT_FALSE(is_measured_with_kernel(costs, activation_of("8x1024x64", "frugal").sections[0],
                                       activation_of("8x1024x64", "frugal").sections[0].nodes[0]))
      << "a guess is no measurement";
  // Of the families that fit, the one with the nearest work: twice 512x64 rather than an eighth of 4096x128.
  EXPECT_DOUBLE_EQ(seconds_of(costs, activation_of("8x512x128")), 2.0);
}

TEST(Cost, AKernelHasItsOwnTime) {
  const CostTable costs =
      make_cost_table(std::vector{measured(linear_of(8, "fast"), 1.0), measured(linear_of(8, "frugal"), 3.0)});
  EXPECT_DOUBLE_EQ(seconds_of(costs, linear_of(8, "fast")), 1.0);
  EXPECT_DOUBLE_EQ(seconds_of(costs, linear_of(8, "frugal")), 3.0);
  EXPECT_DOUBLE_EQ(seconds_of(costs, linear_of(8)), 1.0)
      << "before kernels are chosen: the one that will be, where there is room";
  EXPECT_GT(seconds_of(costs, linear_of(16, "frugal")), 3.0) << "its own family before another kernel's";
}

TEST(Cost, NodesUnlikeAnyGetTheRatesOfThoseMeasured) {
  const Program program = two_microbatches();
  const NodeCost node = describe_cost(program.sections[0], program.sections[0].nodes[0]);
  NodeCost other{.key = "other", .family = "other", .kernel = "", .flops = 0, .bytes = 1000, .seconds = 10};
  const CostTable costs = make_cost_table(std::vector{other});
  EXPECT_DOUBLE_EQ(costs.bytes_per_second, 100);
  EXPECT_DOUBLE_EQ(seconds_of(costs, program), costs.seconds_per_node + node.bytes / 100);
}

// A product large enough to be bound by its arithmetic, and a sum that is bound by its bytes.
Program product_and_sum(const std::string& dtype) {
  return parse_program(fmt::format("program test batch 512 microbatch 512\n"
                                   "state x : {0}[512x512] input\n"
                                   "state w : {0}[512x512] parameter\n"
                                   "section micro\n"
                                   "%a = linear(x@0, w@0) : {0}[512x512] activation ; forward a\n"
                                   "%b = add(%a, %a) : {0}[512x512] activation ; forward b\n",
                                   dtype),
                       ops::find);
}

double seconds_of_node(const CostTable& costs, const Program& program, std::size_t node) {
  return node_seconds(costs, program.sections[0], program.sections[0].nodes[node]);
}

TEST(Cost, ProductsOfSixteenBitsHaveTheirOwnSpeedAndSumsHalfTheBytes) {
  const Program single = product_and_sum("f32"), bfloat = product_and_sum("bf16"), half = product_and_sum("f16");
  const CostTable costs{.seconds_per_node = 0, .speeds = {.bf16 = 1.5, .f16 = 0.5}};
  EXPECT_DOUBLE_EQ(seconds_of_node(costs, bfloat, 0), seconds_of_node(costs, single, 0) / 1.5);
  EXPECT_DOUBLE_EQ(seconds_of_node(costs, half, 0), seconds_of_node(costs, single, 0) / 0.5);
  EXPECT_DOUBLE_EQ(seconds_of_node(costs, bfloat, 1), seconds_of_node(costs, single, 1) / 2);
  EXPECT_DOUBLE_EQ(seconds_of_node(costs, half, 1), seconds_of_node(costs, single, 1) / 2);
}

TEST(Cost, RatesOfOnePrecisionCarryOverToAnother) {
  const ProductSpeeds speeds{.bf16 = 1.5, .f16 = 0.5};
  const std::map<std::string, double> speed_of{{"f32", 1}, {"bf16", 1.5}, {"f16", 0.5}};
  for (const auto& [from, from_speed] : speed_of) {
    NodeCost product = measured(product_and_sum(from), 3.0);
    product.key += " of another shape", product.family += " of another shape";
    CostTable costs = make_cost_table(std::vector{product}, speeds);
    costs.seconds_per_node = 0;
    for (const auto& [to, to_speed] : speed_of)
      EXPECT_DOUBLE_EQ(seconds_of_node(costs, product_and_sum(to), 0), 3.0 * from_speed / to_speed) << from << " to " << to;
  }
}

}  // namespace
}  // namespace snug
