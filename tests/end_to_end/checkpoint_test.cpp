// Checkpointing is exact: whatever backward computes again, losses and states have the bits of plain training.
#include "report/flops.h"
#include "trained_bits.h"

namespace snug::testing {

namespace {

class Checkpointed : public ::testing::TestWithParam<std::string> {};

TEST_P(Checkpointed, TrainingHasThePlainOnesBitsAndThePlannedBytes) {
  const TrainedModel model{.name = GetParam()};
  const TrainedBits plain = trained(model);
  EXPECT_GT(plain.losses.front(), 0);
  EXPECT_NE(plain.losses.front(), plain.losses.back());
  std::vector<std::string> strategies{"no-bn", "every-1", "every-2",       "sqrt",          "log",
                                      "chen",  "optimal", "optimal:600KB", "optimal:1.2MB", "greedy:300KB"};
  if (GetParam() == "wrn-10-1") strategies.insert(strategies.end(), {"residual-1", "residual-2", "residual-1*", "residual-2*"});
  for (const std::string& strategy : strategies) {
    SCOPED_TRACE(strategy);
    const TrainedBits bits = trained(model, {.checkpoint = strategy, .measured = true});
    expect_same_bits(bits, plain);
    EXPECT_EQ(bits.measured, bits.planned);
    EXPECT_LE(bits.planned, plain.planned);
  }
}

TEST_P(Checkpointed, CheckingModeFindsNothing) {
  const TrainedModel model{.name = GetParam()};
  const TrainedBits plain = trained(model);
  for (const char* strategy : {"sqrt", "greedy:300KB"}) {
    expect_same_bits(trained(model, {.checkpoint = strategy, .red_zone = Bytes(64)}), plain);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Checkpointed, ::testing::Values("small-cnn", "wrn-10-1", "dropout-network"),
                         [](const auto& test) { return test_name(test.param); });

TEST(CheckpointedFlops, AreCountedAndBelowOneMoreForwardPassForSegments) {
  const Backend backend = backends::cpu_backend(1);
  const auto ratio = [&](std::string_view strategy) {
    const Program graph = frontend::build_zoo_model("wrn-28-2", {.batch = 2});
    return report::flops_ratio(
        report::flops_of_step(compile(graph, backend, {.methods = {.checkpoint = parse_checkpoint_strategy(strategy)}}).program)
            .step);
  };
  EXPECT_EQ(ratio("none"), 1.0);
  EXPECT_GT(ratio("no-bn"), 1.0);
  EXPECT_LT(ratio("no-bn"), 1.01);  // the report: less than one percent
  for (const char* strategy : {"sqrt", "every-2", "residual-1", "residual-2", "residual-2*"}) {
    EXPECT_GT(ratio(strategy), 1.1) << strategy;
    EXPECT_LT(ratio(strategy), 1.34) << strategy;
  }
  EXPECT_GT(ratio("log"), 1.34);
}

// Batch 100 in microbatches of 10: 24 MB, where residual-2* needs more, for less recomputation.
TEST(OptimalPlans, FitWhereTheReportsStrategyDoesNot) {
  const Backend backend = backends::cpu_backend(2);
  const Program graph = frontend::build_zoo_model("wrn-28-2", {.batch = 10});
  const auto planned = [&](const CheckpointStrategy& strategy) {
    return compile(graph, backend, {.batch = 100, .methods = {.checkpoint = strategy}});
  };
  const auto ratio = [](const Plan& plan) { return report::flops_ratio(report::flops_of_step(plan.program).step); };
  const Bytes budget(24'000'000);
  const Plan named = planned(parse_checkpoint_strategy("residual-2*"));
  const Plan plan = planned({.kind = CheckpointStrategy::Kind::optimal, .limit = budget - named.persistent_bytes});
  EXPECT_GT(named.planned_peak_bytes, budget);
  EXPECT_LE(plan.planned_peak_bytes, budget);
  EXPECT_LE(ratio(plan), 1.25);
  EXPECT_LT(ratio(plan), ratio(named));
  EXPECT_LT(planned(parse_checkpoint_strategy("optimal")).planned_peak_bytes, Bytes(23'000'000));
}

}  // namespace

}  // namespace snug::testing
