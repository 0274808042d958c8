// The goal of docs/memory.md: within 1% of the liveness bound on training programs.
#include "training_program.h"

#include <cmath>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "placement/search.h"
#include "placement/validate.h"

namespace snug::placement {
namespace {

struct NamedNetwork {
  const char* name;
  ResNetOptions options;
};

std::vector<NamedNetwork> networks() {
  const std::vector<int> resnet50{3, 4, 6, 3};
  return {
      {"wrn_28_2_batch_1", {.blocks_per_stage = {4, 4, 4}, .batch = 1, .channels = 32}},
      {"wrn_28_2_batch_10", {.blocks_per_stage = {4, 4, 4}, .batch = 10, .channels = 32}},
      {"wrn_28_2_batch_100_half", {.blocks_per_stage = {4, 4, 4}, .batch = 100, .channels = 32, .bytes_per_number = 2}},
      {"resnet_50_batch_3",
       {.kind = BlockKind::bottleneck, .blocks_per_stage = resnet50, .batch = 3, .channels = 64, .image_side = 56}},
      {"resnet_50_batch_32_half",
       {.kind = BlockKind::bottleneck,
        .blocks_per_stage = resnet50,
        .batch = 32,
        .channels = 64,
        .image_side = 56,
        .bytes_per_number = 2}},
      {"preresnet_164_batch_7", {.kind = BlockKind::bottleneck, .blocks_per_stage = {18, 18, 18}, .batch = 7}},
  };
}

double gap_percent(const Result& result) {
  return 100.0 * static_cast<double>((result.placement.height - result.bound).count()) /
         static_cast<double>(result.bound.count());
}

void expect_within_one_percent(const std::string& name, const Problem& problem) {
  const Result result = place(problem);
  EXPECT_EQ(find_violation(problem, result.placement).value_or(""), "") << name;
  EXPECT_LE(gap_percent(result), 1.0) << name << ", placed by " << result.method;
}

TEST(TrainingProgram, StoringEverythingPeaksHigherThanComputingAgain) {
  // What the other tests rest on: the generator's programs behave like training with and without checkpointing.
  const ResNetOptions options{.blocks_per_stage = {8, 8}, .batch = 10};
  const Bytes stored = lower_bound(make_training_step(options, 16, 1));
  const Bytes square_root = lower_bound(make_training_step(options, 4, 4));
  const Bytes logarithm = lower_bound(make_training_step(options, 1, 2));
  EXPECT_GT(stored, square_root);
  EXPECT_GT(square_root, logarithm);
}

TEST(TrainingProgram, IsPlacedWithinOnePercentOfTheBoundWhenEverythingIsStored) {
  for (const auto& [name, options] : networks()) expect_within_one_percent(name, make_training_step(options, 1000, 1));
}

TEST(TrainingProgram, IsPlacedWithinOnePercentOfTheBoundWithCheckpoints) {
  for (const auto& [name, options] : networks()) {
    const auto blocks = std::accumulate(options.blocks_per_stage.begin(), options.blocks_per_stage.end(), std::size_t{0});
    const auto root = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(blocks))));
    expect_within_one_percent(std::string(name) + " residual-1", make_training_step(options, 1, blocks));
    expect_within_one_percent(std::string(name) + " residual-2", make_training_step(options, 2, (blocks + 1) / 2));
    expect_within_one_percent(std::string(name) + " sqrt", make_training_step(options, root, root));
    expect_within_one_percent(std::string(name) + " log", make_training_step(options, 1, 2));
  }
}

TEST(TrainingProgram, TheSearchClosesTheGapThatTheHeuristicsLeave) {
  const ResNetOptions options{.kind = BlockKind::bottleneck,
                              .blocks_per_stage = {3, 4, 6, 3},
                              .batch = 32,
                              .channels = 64,
                              .image_side = 56,
                              .bytes_per_number = 2};
  const Problem problem = make_training_step(options, 1, 16);
  EXPECT_GT(gap_percent(place(problem, {.improvement_nodes = 0, .exact_nodes = 0})), 0.5);
  EXPECT_LT(gap_percent(place(problem)), 0.01);
}

TEST(TrainingProgram, AThousandLayersWithTwentyThousandItems) {
  // Half as deep again as preresnet-1001, whose square-root checkpointing has 15,000 items.
  const ResNetOptions options{.kind = BlockKind::bottleneck, .blocks_per_stage = {150, 150, 150}, .batch = 10};
  const Problem problem = make_training_step(options, 22, 22);
  ASSERT_GE(problem.items.size(), 20'000U);
  expect_within_one_percent("preresnet-1352 sqrt", problem);
}

TEST(TrainingProgram, AThousandLayersWithNothingComputedAgain) {
  const ResNetOptions options{.kind = BlockKind::bottleneck, .blocks_per_stage = {111, 111, 111}, .batch = 10};
  expect_within_one_percent("preresnet-1001", make_training_step(options, 333, 1));
}

}  // namespace
}  // namespace snug::placement
