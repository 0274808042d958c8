#include "report/flops.h"

#include <limits>

#include <gtest/gtest.h>

#include "analysis/cost.h"
#include "tiny_plan.h"
#include <snug/error.h>

namespace snug::report {
namespace {

// One microbatch of four examples: two products of 4x8x16 and 4x16x4, ReLU 64, loss 5 x 16, three metrics.
constexpr std::int64_t kForward = 2 * 4 * 8 * 16 + 64 + 2 * 4 * 16 * 4 + 5 * 16 + 3;
constexpr std::int64_t kBackward = 5 * 16 + 2 * (2 * 4 * 16 * 4) + 64 + 64;
constexpr std::int64_t kUpdate = 6 * (16 + 64);

TEST(Flops, AStepRunsEveryMicrobatchAndOneUpdate) {
  const StepFlops flops = flops_of_step(tiny_plan().program);
  EXPECT_EQ(flops.step.forward, 2 * kForward);
  EXPECT_EQ(flops.step.backward, 2 * kBackward);
  EXPECT_EQ(flops.step.recompute, 0);
  EXPECT_EQ(flops.step.update, kUpdate);
  EXPECT_EQ(flops.step.total(), 2 * kForward + 2 * kBackward + kUpdate);
  EXPECT_EQ(flops_ratio(flops.step), 1.0);
}

TEST(Flops, AnImageIsAShareOfItsMicrobatch) {
  const StepFlops flops = flops_of_step(tiny_plan().program);
  EXPECT_EQ(flops.per_example.forward, (kForward + 2) / 4);
  EXPECT_EQ(flops.per_example.backward, (kBackward + 2) / 4);
  EXPECT_EQ(flops.per_example.update, 0);
}

TEST(Flops, APartlyFilledMicrobatchIsComputedInFull) {
  const Plan plan = plan_of(replaced(tiny_text(), "batch 8 microbatch 4", "batch 9 microbatch 4"));
  EXPECT_EQ(microbatches(plan.program), 3);
  EXPECT_EQ(flops_of_step(plan.program).step.forward, 3 * kForward);
}

TEST(Flops, RecomputedNodesRaiseTheRatio) {
  const Plan plan = plan_of(replaced(tiny_text(), "; forward body.one.relu", "; recompute body.one.relu"));
  const StepFlops flops = flops_of_step(plan.program);
  EXPECT_EQ(flops.step.recompute, 2 * 64);
  EXPECT_EQ(flops.step.forward, 2 * (kForward - 64));
  EXPECT_EQ(flops.per_example.recompute, 16);
  const double all = 2 * kForward + 2 * kBackward + kUpdate;
  EXPECT_DOUBLE_EQ(flops_ratio(flops.step), all / (all - 128));
}

TEST(Flops, OpsSumToTheStepLargestFirst) {
  const StepFlops flops = flops_of_step(tiny_plan().program);
  std::int64_t sum = 0;
  std::int64_t nodes = 0;
  for (const OpFlops& op : flops.ops) {
    sum += op.flops;
    nodes += op.nodes;
  }
  EXPECT_EQ(sum, flops.step.total());
  EXPECT_EQ(nodes, 12);
  EXPECT_EQ(flops.ops.front().op, "linear");
  EXPECT_EQ(flops.ops.front().phase, Phase::forward);
  EXPECT_EQ(flops.ops.front().nodes, 2);
}

TEST(Flops, MoreThanCanBeCountedIsRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  PhaseFlops flops;
  flops.add(Phase::forward, kMost);
  EXPECT_THROW(flops.add(Phase::forward, 1), UserError);
  EXPECT_THROW(times(kMost / 2, 3), UserError);
  flops.add(Phase::backward, 1);
  EXPECT_THROW(flops.total(), UserError);
}

}  // namespace
}  // namespace snug::report
