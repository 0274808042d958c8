#include "report/moments.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tiny_plan.h"

namespace snug::report {
namespace {

Bytes in_class(const ByClass& by_class, MemoryClass c) { return by_class[static_cast<std::size_t>(c)]; }

TEST(Moments, StatesAreCountedOnceInTheirClass) {
  const ByClass states = states_by_class(tiny_plan().program);
  EXPECT_EQ(in_class(states, MemoryClass::model), Bytes(64 + 24 + 4 * (128 + 16 + 64)));
  EXPECT_EQ(in_class(states, MemoryClass::gradient), Bytes(4 * (64 + 16)));
  EXPECT_EQ(in_class(states, MemoryClass::optimizer), Bytes(4 * (64 + 16)));
  EXPECT_EQ(in_class(states, MemoryClass::input), Bytes(4 * 32 + 16));
  EXPECT_EQ(in_class(states, MemoryClass::activation), Bytes(0));
}

TEST(Moments, EveryNodeOfAStepHasItsLiveBytes) {
  const Plan plan = tiny_plan();
  const Bytes states = total_of(states_by_class(plan.program));
  const auto step = moments_of_step(plan);
  ASSERT_EQ(step.size(), 2U);
  ASSERT_EQ(step[0].alive.size(), 10U);
  ASSERT_EQ(step[1].alive.size(), 2U);
  std::vector<std::int64_t> transient;
  for (const ByClass& alive : step[0].alive) transient.push_back((total_of(alive) - states).count());
  // fc 256; relu in its bytes; head.fc 64; loss 24, gone after its sum; grad in head.fc's bytes; workspace 1000; two gradients of
  // 256.
  EXPECT_EQ(transient, (std::vector<std::int64_t>{256, 256, 320, 344, 344, 320, 1320, 576, 512, 256}));
  for (const ByClass& alive : step[1].alive) EXPECT_EQ(total_of(alive), states);
}

TEST(Moments, TheFullestIsTheOneThePlanNames) {
  const Plan plan = tiny_plan();
  const PeakMoment peak = peak_moment(plan);
  const auto step = moments_of_step(plan);
  EXPECT_EQ(peak.node, 6);
  EXPECT_EQ(step[0].alive[6], peak.by_class);
  EXPECT_EQ(in_class(step[0].alive[6], MemoryClass::workspace), Bytes(1000));
}

TEST(Moments, BytesPassFromClassToClassWithTheirTenant) {
  const auto step = moments_of_step(plan_of(R"(program p batch 1 microbatch 1
state x : f32[10] input
section micro
  %a = relu(x@0) : f32[10] activation ; forward a
  %b = relu(%a) : f32[10] gradient in %a ; forward b
  %c = relu(%b) : f32[10] activation ; forward c
)"));
  const auto& alive = step.front().alive;
  EXPECT_EQ(in_class(alive[0], MemoryClass::activation), Bytes(40));
  EXPECT_EQ(in_class(alive[0], MemoryClass::gradient), Bytes(0));
  EXPECT_EQ(in_class(alive[1], MemoryClass::activation), Bytes(0));
  EXPECT_EQ(in_class(alive[1], MemoryClass::gradient), Bytes(40));
  EXPECT_EQ(in_class(alive[2], MemoryClass::activation), Bytes(40));
  EXPECT_EQ(in_class(alive[2], MemoryClass::gradient), Bytes(40));
}

TEST(Moments, TheLargestAreOnePerLayerAndSorted) {
  const Plan plan = tiny_plan();
  const auto largest = largest_moments(plan.program, moments_of_step(plan));
  ASSERT_EQ(largest.size(), 3U);  // head.fc, loss, body.one
  EXPECT_EQ(largest[0].node, 6U);
  EXPECT_TRUE(std::is_sorted(largest.begin(), largest.end(),
                             [](const Moment& a, const Moment& b) { return total_of(a.alive) > total_of(b.alive); }));
}

TEST(Moments, NamesAreCutAfterTheirFirstComponents) {
  EXPECT_EQ(first_components("group1.block2.conv1", 2), "group1.block2");
  EXPECT_EQ(first_components("group1.block2.conv1", 1), "group1");
  EXPECT_EQ(first_components("head.fc", 2), "head.fc");
  EXPECT_EQ(first_components("loss", 2), "loss");
  EXPECT_EQ(first_components("", 2), "");
}

}  // namespace
}  // namespace snug::report
