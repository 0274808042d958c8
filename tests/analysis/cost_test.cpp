#include "analysis/cost.h"

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

}  // namespace
}  // namespace snug
