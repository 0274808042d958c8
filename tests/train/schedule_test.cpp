#include "train/schedule.h"

#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/messages.h"

namespace snug::train {
namespace {

using Kind = Schedule::Kind;
using Rates = std::vector<std::pair<std::uint64_t, double>>;

// PyTorch multiplies from step to step, so its last digits wander.
void expect_rates(const Schedule& schedule, const Rates& rates) {
  for (const auto& [step, rate] : rates) EXPECT_NEAR(learning_rate(schedule, step), rate, 1e-13) << "step " << step;
}

TEST(Schedule, ConstantStaysWhereItIs) {
  const Schedule schedule{.base = 0.3};
  for (const std::uint64_t step : {0U, 1U, 1000000U}) EXPECT_EQ(learning_rate(schedule, step), 0.3);
}

// torch.optim.lr_scheduler (1.13): the rate that the optimizer has at each step.

// MultiStepLR(lr=0.1, milestones=[3, 7], gamma=0.2)
TEST(Schedule, StepIsPyTorchsMultiStepLR) {
  expect_rates({.kind = Kind::step, .base = 0.1, .milestones = {3, 7}, .gamma = 0.2}, {{0, 0.1},
                                                                                       {2, 0.1},
                                                                                       {3, 0.020000000000000004},
                                                                                       {6, 0.020000000000000004},
                                                                                       {7, 0.004000000000000001},
                                                                                       {11, 0.004000000000000001}});
}

// CosineAnnealingLR(lr=0.1, T_max=20, eta_min=0.002)
TEST(Schedule, CosineIsPyTorchsCosineAnnealingLR) {
  const Schedule schedule{.kind = Kind::cosine, .base = 0.1, .total_steps = 20, .final = 0.002};
  expect_rates(
      schedule,
      {{0, 0.1}, {1, 0.09939672868916176}, {5, 0.08564823227814083}, {10, 0.051000000000000004}, {19, 0.0026032713108382548}});
  // PyTorch's would rise again.
  for (const std::uint64_t step : {20U, 21U, 40U}) EXPECT_EQ(learning_rate(schedule, step), 0.002);
}

// LinearLR(lr=0.1, start_factor=1, end_factor=0.1, total_iters=20)
TEST(Schedule, LinearFallsByTheSameAmountInEveryStep) {
  expect_rates({.kind = Kind::linear, .base = 0.1, .total_steps = 20, .final = 0.01},
               {{0, 0.1}, {1, 0.0955}, {10, 0.055}, {19, 0.0145}, {20, 0.01}, {40, 0.01}});
  expect_rates({.kind = Kind::linear, .base = 0.1, .warmup_steps = 4, .total_steps = 20},
               {{0, 0.0}, {2, 0.05}, {4, 0.1}, {8, 0.075}, {12, 0.05}, {19, 0.00625}, {20, 0.0}});
}

// LinearLR(lr=0.2, start_factor=0.25, total_iters=5)
TEST(Schedule, WarmUpIsPyTorchsLinearLR) {
  expect_rates({.base = 0.2, .warmup_steps = 5, .warmup_start = 0.05},
               {{0, 0.05}, {1, 0.08000000000000002}, {4, 0.17}, {5, 0.2}, {7, 0.2}});
}

TEST(Schedule, WarmUpBeginsAtZeroUnlessToldOtherwise) {
  expect_rates({.base = 0.2, .warmup_steps = 4}, {{0, 0.0}, {1, 0.05}, {2, 0.1}, {3, 0.15}, {4, 0.2}});
}

// SequentialLR([LinearLR(start_factor=0.1, total_iters=4), CosineAnnealingLR(T_max=16, eta_min=0.002)], milestones=[4]), lr=0.1
TEST(Schedule, CosineBeginsWhereTheWarmUpEnds) {
  expect_rates({.kind = Kind::cosine, .base = 0.1, .warmup_steps = 4, .warmup_start = 0.01, .total_steps = 20, .final = 0.002},
               {{0, 0.010000000000000002},
                {1, 0.03250000000000001},
                {3, 0.07750000000000003},
                {4, 0.1},
                {5, 0.0990584787397583},
                {12, 0.05100000000000001},
                {19, 0.002941521260241709},
                {20, 0.002}});
}

// SequentialLR([LinearLR(start_factor=0.1, total_iters=4), MultiStepLR(milestones=[2, 6], gamma=0.1)], milestones=[4]), lr=0.4:
// PyTorch counts the milestones from the end of the warm-up, Snug from the run's first step.
TEST(Schedule, MilestonesCountFromTheFirstStep) {
  expect_rates({.kind = Kind::step, .base = 0.4, .warmup_steps = 4, .warmup_start = 0.04, .milestones = {6, 10}},
               {{0, 0.04000000000000001},
                {1, 0.13000000000000003},
                {2, 0.22000000000000006},
                {3, 0.3100000000000001},
                {4, 0.4},
                {5, 0.4},
                {6, 0.04000000000000001},
                {9, 0.04000000000000001},
                {10, 0.004000000000000001},
                {13, 0.004000000000000001}});
}

// fairseq's inverse_sqrt: its learning rate before update n is warmup_init_lr + n (lr - warmup_init_lr) / warmup_updates while
// n < warmup_updates, then lr sqrt(warmup_updates) / sqrt(n). These are of lr=5e-4, warmup_init_lr=1e-7, warmup_updates=4000.
TEST(Schedule, InverseSqrtIsFairseqs) {
  const Schedule schedule{.kind = Kind::inverse_sqrt, .base = 5e-4, .warmup_steps = 4000, .warmup_start = 1e-7};
  expect_rates(schedule, {{0, 1e-7},
                          {1, 2.24975e-7},
                          {2000, 0.00025005},
                          {3999, 0.000499875025},
                          {4000, 5e-4},
                          {4001, 0.0004999375117163091},
                          {16000, 2.5e-4},
                          {100000, 1e-4}});
}

TEST(Schedule, InverseSqrtHalvesWithFourTimesTheSteps) {
  const Schedule schedule{.kind = Kind::inverse_sqrt, .base = 0.3, .warmup_steps = 5};
  EXPECT_EQ(learning_rate(schedule, 5), 0.3);
  EXPECT_EQ(learning_rate(schedule, 20), 0.15);
  EXPECT_EQ(learning_rate(schedule, 80), 0.075);
  Schedule longer = schedule;
  longer.total_steps = 1000;
  for (const std::uint64_t step : {0U, 3U, 7U, 999U, 2000U})
    EXPECT_EQ(learning_rate(longer, step), learning_rate(schedule, step)) << "whatever the run's length";
}

std::string refusal(const Schedule& schedule) {
  return support::message_of<UserError>([&] { learning_rate(schedule, 0); });
}

TEST(Schedule, ImpossibleSettingsAreRefused) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(support::mentions(refusal({.base = 0}), {"learning rate", "0"}));
  EXPECT_TRUE(support::mentions(refusal({.base = -1}), {"learning rate", "-1"}));
  EXPECT_TRUE(support::mentions(refusal({.base = kNaN}), {"learning rate", "nan"}));
  EXPECT_TRUE(support::mentions(refusal({.warmup_start = -0.1}), {"warm-up", "-0.1", "0"}));
  EXPECT_TRUE(support::mentions(refusal({.warmup_steps = 11, .total_steps = 10}), {"warm-up", "11", "10"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::step}), {"milestones", "no", "constant"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::step, .milestones = {3}, .gamma = 0}), {"multiply", "0", "0.1"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::step, .milestones = {5, 5}}), {"milestone 5", "after"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::step, .warmup_steps = 4, .milestones = {3}}), {"milestone", "3", "4"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::cosine}), {"cosine", "total"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::cosine, .warmup_steps = 4, .total_steps = 4}), {"4", "cosine"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::cosine, .total_steps = 4, .final = -1}), {"cosine", "-1", "0"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::linear}), {"linear", "total"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::linear, .warmup_steps = 4, .total_steps = 4}), {"4", "linear"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::linear, .total_steps = 4, .final = -1}), {"linear", "-1", "0"}));
  EXPECT_TRUE(support::mentions(refusal({.kind = Kind::inverse_sqrt}), {"inverse-sqrt", "warm-up"}));
  EXPECT_EQ(refusal({.warmup_steps = 10, .total_steps = 10}), "nothing was thrown");
  EXPECT_EQ(refusal({.kind = Kind::step, .milestones = {50}}), "nothing was thrown");
}

}  // namespace
}  // namespace snug::train
