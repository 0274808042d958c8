// The solver's promises: a frontier that does not depend on the budget, and with it less budget never more memory, and a smallest
// budget that is exact.
#include "plan/frontier.h"

#include <gtest/gtest.h>

#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/explain.h"
#include "plan/fit.h"
#include "support/accepting_backend.h"
#include "support/cross_linked_network.h"
#include <snug/error.h>

namespace snug::testing {
namespace {

struct Network {
  std::string name;
  std::int64_t image_size;
};

void PrintTo(const Network& network, std::ostream* os) { *os << network.name; }

FitRequest request_for(const Network& network, std::int64_t batch = 12) {
  return {.model =
              [network](std::int64_t microbatch) {
                return frontend::build_zoo_model(network.name, {.batch = microbatch, .image_size = network.image_size});
              },
          .options = {.batch = batch},
          .min_microbatch = 4};
}

std::optional<std::int64_t> smallest_budget(const FitRequest& request, const Backend& backend) {
  try {
    fit(request, backend);
    return std::nullopt;
  } catch (const DoesNotFit& refusal) {
    return refusal.smallest_budget_bytes();
  }
}

class Frontiers : public ::testing::TestWithParam<Network> {
 protected:
  AcceptingBackend backend_{{.workspace = {{"conv2d_grad_input", Bytes(4096)}, {"conv2d_grad_weight", Bytes(8192)}}}};
};

TEST_P(Frontiers, FewerBytesAlwaysTakeMoreTime) {
  const Frontier frontier = find_frontier(request_for(GetParam()), backend_);
  ASSERT_GE(frontier.points.size(), 3U);
  for (std::size_t i = 1; i < frontier.points.size(); ++i) {
    EXPECT_GT(frontier.points[i].planned_peak_bytes, frontier.points[i - 1].planned_peak_bytes);
    EXPECT_LT(frontier.points[i].seconds, frontier.points[i - 1].seconds);
  }
  const FrontierPoint& fastest = frontier.points.back();
  EXPECT_EQ(fastest.methods.microbatch, 12) << "by fixed rates nothing is faster than the whole batch at once";
  EXPECT_EQ(fastest.methods.checkpoint, CheckpointStrategy{});
}

TEST_P(Frontiers, ARepeatedSearchAndARecompiledPointGiveTheSameBytes) {
  FitRequest request = request_for(GetParam());
  const Frontier first = find_frontier(request, backend_);
  request.budget = Bytes(1);  // must not matter
  const Frontier second = find_frontier(request, backend_);
  ASSERT_EQ(first.points.size(), second.points.size());
  for (std::size_t i = 0; i < first.points.size(); ++i) {
    const FrontierPoint& point = first.points[i];
    EXPECT_EQ(point.planned_peak_bytes, second.points[i].planned_peak_bytes);
    EXPECT_EQ(point.seconds, second.points[i].seconds);
    EXPECT_EQ(point.methods.checkpoint, second.points[i].methods.checkpoint);
    const Plan plan = compile_point(request, point, backend_);
    EXPECT_EQ(plan.planned_peak_bytes, point.planned_peak_bytes) << to_string(*point.methods.checkpoint);
    EXPECT_EQ(plan.program.microbatch, point.methods.microbatch);
  }
}

TEST_P(Frontiers, TheSmallestBudgetIsExact) {
  FitRequest request = request_for(GetParam());
  request.budget = Bytes(1);
  const auto least = smallest_budget(request, backend_);
  ASSERT_TRUE(least.has_value());
  request.budget = Bytes(*least);
  EXPECT_EQ(fit(request, backend_).plan.planned_peak_bytes, Bytes(*least));
  request.budget = Bytes(*least - 1);
  EXPECT_EQ(smallest_budget(request, backend_), least);
}

TEST_P(Frontiers, LessBudgetIsNeverMoreMemoryAndNeverFaster) {
  FitRequest request = request_for(GetParam());
  const Frontier frontier = find_frontier(request, backend_);
  const std::int64_t least = frontier.points.front().planned_peak_bytes.count();
  const std::int64_t most = frontier.points.back().planned_peak_bytes.count();
  constexpr int kBudgets = 20;
  Bytes bytes(0);
  double seconds = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kBudgets; ++i) {
    request.budget = Bytes(least + (most - least) * i / (kBudgets - 2));  // the last is more than enough
    const Fit found = fit(request, backend_);
    EXPECT_LE(found.plan.planned_peak_bytes, *request.budget);
    EXPECT_EQ(found.plan.planned_peak_bytes, found.point.planned_peak_bytes);
    EXPECT_GE(found.plan.planned_peak_bytes, bytes);
    EXPECT_LE(found.point.seconds, seconds);
    bytes = found.plan.planned_peak_bytes;
    seconds = found.point.seconds;
    const auto on_frontier = std::find_if(frontier.points.rbegin(), frontier.points.rend(), [&](const FrontierPoint& point) {
      return point.planned_peak_bytes <= *request.budget;
    });
    ASSERT_NE(on_frontier, frontier.points.rend());
    EXPECT_EQ(found.point.planned_peak_bytes, on_frontier->planned_peak_bytes);
    EXPECT_EQ(found.point.seconds, on_frontier->seconds);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Frontiers,
                         ::testing::Values(Network{"small-cnn", 16}, Network{"wrn-10-1", 16}, Network{"preresnet-20", 16},
                                           Network{"resnet-18", 32}, Network{"vgg-16", 32}),
                         [](const auto& network) {
                           std::string name = network.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class FrontierFlags : public ::testing::Test {
 protected:
  static FitRequest request() { return request_for({"wrn-10-1", 16}); }
  AcceptingBackend backend_;
};

TEST_F(FrontierFlags, AGivenMicrobatchIsTheOnlyOne) {
  FitRequest given = request();
  given.given.microbatch = 5;
  for (const FrontierPoint& point : find_frontier(given, backend_).points) EXPECT_EQ(point.methods.microbatch, 5);
}

TEST_F(FrontierFlags, AGivenCheckpointIsTheOnlyOne) {
  FitRequest given = request();
  given.given.checkpoint = CheckpointStrategy{.kind = CheckpointStrategy::Kind::sqrt};
  const Frontier frontier = find_frontier(given, backend_);
  EXPECT_GE(frontier.points.size(), 2U);
  for (const FrontierPoint& point : frontier.points) EXPECT_EQ(point.methods.checkpoint, *given.given.checkpoint);
}

TEST_F(FrontierFlags, TheUpdateMovesIntoBackwardOnlyWhereAStepIsOneMicrobatchAndNothingIsClipped) {
  FitRequest asked = request();
  bool fuses = false;
  for (const FrontierPoint& point : find_frontier(asked, backend_).points) {
    if (!point.methods.fuse_update) continue;
    fuses = true;
    EXPECT_EQ(point.methods.microbatch, 12);
    EXPECT_EQ(compile_point(asked, point, backend_).planned_peak_bytes, point.planned_peak_bytes);
  }
  EXPECT_TRUE(fuses);
  asked.options.update.clip_norm = 1;
  for (const FrontierPoint& point : find_frontier(asked, backend_).points) EXPECT_NE(point.methods.fuse_update, true);
}

TEST_F(FrontierFlags, BothGivenIsOnePlan) {
  FitRequest given = request();
  given.given.microbatch = 6;
  given.given.checkpoint = CheckpointStrategy{.kind = CheckpointStrategy::Kind::log};
  const Frontier frontier = find_frontier(given, backend_);
  EXPECT_EQ(frontier.points.size(), 1U);
  EXPECT_EQ(frontier.considered.size(), 1U);
}

TEST_F(FrontierFlags, BatchNormIsSplitOnlyWhereMicrobatchIsAllowedAndNotBelowTheLeast) {
  FitRequest strict = request();
  strict.allowed = Allowance::exact_only().add(Exactness::reassociated);
  for (const FrontierPoint& point : find_frontier(strict, backend_).points) EXPECT_EQ(point.methods.microbatch, 12);
  std::int64_t least = 12;
  for (const FrontierPoint& point : find_frontier(request(), backend_).points) least = std::min(least, *point.methods.microbatch);
  EXPECT_EQ(least, 4);
}

TEST_F(FrontierFlags, WithoutBatchNormSplittingOnlyReassociates) {
  FitRequest plain = request_for({"vgg-16", 32});
  plain.options.update.clip_norm =
      1;  // without it the whole batch with its update in backward takes least: no gradients are kept
  plain.allowed = Allowance::exact_only();
  for (const FrontierPoint& point : find_frontier(plain, backend_).points) EXPECT_EQ(point.methods.microbatch, 12);
  plain.allowed.add(Exactness::reassociated);
  std::int64_t least = 12;
  for (const FrontierPoint& point : find_frontier(plain, backend_).points) least = std::min(least, *point.methods.microbatch);
  EXPECT_EQ(least, 1);
}

TEST_F(FrontierFlags, MeasuredSecondsDecideWhatIsFastest) {
  FitRequest measured = request();
  measured.given.checkpoint = CheckpointStrategy{};
  // Half the batch in no time: then the whole batch is no longer the fastest, and not on the frontier.
  const Plan half = compile(measured.model(6), backend_, measured.options);
  const Section& micro = *half.program.find_section(SectionKind::micro);
  for (const Node& node : micro.nodes) measured.options.costs.measured[cost_key(micro, node)] = 0;
  const Frontier frontier = find_frontier(measured, backend_);
  EXPECT_EQ(frontier.points.back().methods.microbatch, 6);
  measured.budget = Bytes(1'000'000'000'000);
  EXPECT_EQ(fit(measured, backend_).point.methods.microbatch, 6);
  measured.budget.reset();
  EXPECT_EQ(fit(measured, backend_).point.methods.microbatch, 12) << "without a budget a plan stays the whole batch";
}

TEST_F(FrontierFlags, WhereThereIsNoChainSingleValuesGo) {
  const FitRequest cross_linked{.model = cross_linked_network, .options = {.batch = 12}, .given = {.microbatch = 12}};
  const auto is_greedy = [](const FrontierPoint& point) {
    return point.methods.checkpoint->kind == CheckpointStrategy::Kind::greedy;
  };
  const Frontier frontier = find_frontier(cross_linked, backend_);
  EXPECT_TRUE(std::any_of(frontier.points.begin(), frontier.points.end(), is_greedy));
  for (const FrontierPoint& point : find_frontier(request(), backend_).points) EXPECT_FALSE(is_greedy(point));
}

TEST_F(FrontierFlags, ExplanationsLeadFromEverythingAtOnceToTheChosenPlan) {
  const FitRequest asked = request();
  const Frontier frontier = find_frontier(asked, backend_);
  const FrontierPoint& smallest = frontier.points.front();
  const std::vector<MethodStep> steps = explain(asked, smallest, backend_);
  ASSERT_GE(steps.size(), 2U);
  EXPECT_EQ(steps.front().planned_peak_bytes, frontier.points.back().planned_peak_bytes);
  EXPECT_EQ(steps.back().planned_peak_bytes, smallest.planned_peak_bytes);
  EXPECT_EQ(steps.back().seconds, smallest.seconds);
  EXPECT_EQ(explain(asked, frontier.points.back(), backend_).size(), 1U);
}

}  // namespace
}  // namespace snug::testing
