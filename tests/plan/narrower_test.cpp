#include "plan/narrower.h"

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "plan/explain.h"
#include "plan/fit.h"
#include "support/accepting_backend.h"
#include <snug/error.h>

namespace snug::testing {
namespace {

FitRequest request_with(Allowance allowed) {
  const auto model = [](DType dtype) {
    return [dtype](std::int64_t microbatch) {
      return frontend::build_zoo_model("small-cnn", {.batch = microbatch, .dtype = dtype});
    };
  };
  return {.model = model(DType::f32),
          .options = {.batch = 40},
          .allowed = allowed,
          .narrower = FitRequest::Narrower{.model = model(DType::bf16), .sgd = {.stochastic_rounding = true}}};
}

Allowance with_precision() { return Allowance().add(Exactness::precision); }

DType stored(const Plan& plan) { return plan.program.state(plan.program.find_state("conv1.weight")).type.dtype; }

class NarrowerTest : public ::testing::Test {
 protected:
  AcceptingBackend backend_;
};

TEST_F(NarrowerTest, IsTakenOnlyWhereItIsAllowedAndOnlyForABudget) {
  EXPECT_FALSE(narrowed(request_with({})));
  EXPECT_EQ(stored(fit(request_with(with_precision()), backend_).plan), DType::f32);
  FitRequest plain = request_with({});
  const std::vector<FrontierPoint> points = find_frontier(plain, backend_).points;
  plain.budget = points.front().planned_peak_bytes - Bytes(1);
  EXPECT_THROW(fit(plain, backend_), DoesNotFit);
  FitRequest allowed = request_with(with_precision());
  allowed.budget = plain.budget;
  const Fit found = fit(allowed, backend_);
  EXPECT_TRUE(found.point.narrowed);
  EXPECT_EQ(stored(found.plan), DType::bf16);
  EXPECT_LE(found.plan.planned_peak_bytes, *allowed.budget);
  EXPECT_EQ(compile_point(allowed, found.point, backend_).planned_peak_bytes, found.plan.planned_peak_bytes);
}

TEST_F(NarrowerTest, BothModelsMakeOneFrontier) {
  const FitRequest allowed = request_with(with_precision());
  const Frontier both = find_frontier(allowed, backend_);
  EXPECT_GT(both.considered.size(), find_frontier(request_with({}), backend_).considered.size());
  EXPECT_TRUE(both.points.front().narrowed);
  for (std::size_t i = 1; i < both.points.size(); ++i) {
    EXPECT_LT(both.points[i - 1].planned_peak_bytes, both.points[i].planned_peak_bytes);
    EXPECT_GT(both.points[i - 1].seconds, both.points[i].seconds);
  }
  // The smallest budget is exact, and one byte less is refused.
  FitRequest least = allowed;
  least.budget = both.points.front().planned_peak_bytes;
  EXPECT_EQ(fit(least, backend_).plan.planned_peak_bytes, *least.budget);
  least.budget = *least.budget - Bytes(1);
  EXPECT_THROW(fit(least, backend_), DoesNotFit);
}

TEST_F(NarrowerTest, OfTwoPlansTheFasterThatFitsIsTaken) {
  const auto placed = [](std::int64_t bytes, double seconds) {
    return PlacedPoint{.point = {.planned_peak_bytes = Bytes(bytes), .seconds = seconds}, .plan = {}};
  };
  const auto takes_narrow = [&](std::int64_t wide, double wide_seconds, std::int64_t narrow, double narrow_seconds,
                                std::optional<Bytes> budget) {
    return better_of(placed(wide, wide_seconds), placed(narrow, narrow_seconds), budget).point.narrowed;
  };
  EXPECT_FALSE(takes_narrow(100, 1, 50, 2, Bytes(100)));  // slower
  EXPECT_TRUE(takes_narrow(100, 2, 50, 1, Bytes(100)));
  EXPECT_TRUE(takes_narrow(100, 1, 50, 2, Bytes(60)));  // the other does not fit
  EXPECT_FALSE(takes_narrow(50, 1, 50, 1, Bytes(60)));  // nothing gained
  EXPECT_TRUE(takes_narrow(100, 1, 50, 2, Bytes(10)));  // neither fits: the smaller names the budget
}

TEST_F(NarrowerTest, AnExplanationSaysWhatItSaves) {
  const FitRequest allowed = request_with(with_precision());
  const FrontierPoint least = find_frontier(allowed, backend_).points.front();
  const std::vector<MethodStep> steps = explain(allowed, least, backend_);
  ASSERT_GT(steps.size(), 1U);
  EXPECT_EQ(steps[1].method, "stored with 16 bits");
  EXPECT_LT(steps[1].planned_peak_bytes, steps[0].planned_peak_bytes);
  EXPECT_EQ(steps.back().planned_peak_bytes, least.planned_peak_bytes);
}

// A loss scale that follows the gradients cannot wait for them one by one, so a search does not try to.
TEST_F(NarrowerTest, ASearchDoesNotFuseTheUpdateWhereOverflowsAreFound) {
  FitRequest request = request_with({});
  request.options.sgd.finds_overflow = true;
  for (const FrontierPoint& point : find_frontier(request, backend_).points) EXPECT_FALSE(point.fuses_update);
}

}  // namespace
}  // namespace snug::testing
