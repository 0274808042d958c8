// However fast 16 bits are beside 32: no plan is taken, shown or advised where another is faster and no larger.
#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "plan/explain.h"
#include "plan/fit.h"
#include "support/accepting_backend.h"

namespace snug::testing {
namespace {

struct Case {
  std::string model;
  std::int64_t batch;
  double bf16;  // products beside those of floats
  bool compresses = false;
};

class Dominance : public ::testing::TestWithParam<Case> {
 protected:
  Dominance() {
    backend_.product_speeds = {.bf16 = GetParam().bf16};
    const auto model = [](std::int64_t microbatch) { return frontend::build_zoo_model(GetParam().model, {.batch = microbatch}); };
    request_ = {.model = model,
                .options = {.batch = GetParam().batch, .costs = make_cost_table({}, backend_.product_speeds)},
                .allowed = Allowance().add(Exactness::precision),
                .narrow_precision = DType::bf16};
    if (GetParam().compresses) request_.allowed.add(Exactness::compressed);
  }

  // Every plan that is placed for one of the two, found by searches that know nothing of the other.
  std::vector<FrontierPoint> plans_of_either() const {
    std::vector<FrontierPoint> plans;
    for (const DType precision : {DType::f32, DType::bf16}) {
      FitRequest given = request_;
      given.given.precision = precision;
      const Frontier found = find_frontier(given, backend_);
      plans.insert(plans.end(), found.points.begin(), found.points.end());
    }
    return plans;
  }

  AcceptingBackend backend_;
  FitRequest request_;
};

TEST_P(Dominance, NoPlanIsTakenWhereAnotherIsFasterAndNoLarger) {
  const std::vector<FrontierPoint> plans = plans_of_either();
  Bytes least = plans.front().planned_peak_bytes;
  Bytes most;
  for (const FrontierPoint& plan : plans) {
    least = std::min(least, plan.planned_peak_bytes);
    most = std::max(most, plan.planned_peak_bytes);
  }
  constexpr int kBudgets = 6;
  for (int i = 0; i <= kBudgets; ++i) {
    // From the smallest that is possible to more than everything at once takes.
    request_.budget = least + Bytes((most - least).count() * 5 / 4 * i / kBudgets);
    const FrontierPoint taken = fit(request_, backend_).point;
    for (const FrontierPoint& other : plans) {
      if (other.planned_peak_bytes > *request_.budget) continue;
      EXPECT_GE(other.seconds, taken.seconds)
          << "budget " << request_.budget->count() << ": " << (other.methods.precision == DType::bf16 ? "16 bits, " : "32 bits, ")
          << to_string(*other.methods.checkpoint);
      if (other.seconds == taken.seconds) {
        EXPECT_GE(other.planned_peak_bytes, taken.planned_peak_bytes) << "budget " << request_.budget->count();
      }
    }
  }
}

TEST_P(Dominance, NoPlanIsShownWhereAnotherIsFasterAndNoLarger) {
  const std::vector<FrontierPoint> shown = find_frontier(request_, backend_).points;
  const std::vector<FrontierPoint> plans = plans_of_either();
  for (const FrontierPoint& point : shown) {
    for (const FrontierPoint& other : plans) {
      EXPECT_FALSE(other.seconds < point.seconds && other.planned_peak_bytes <= point.planned_peak_bytes)
          << point.planned_peak_bytes.count() << " and " << other.planned_peak_bytes.count();
    }
  }
}

// What a refusal advises takes fewer bytes than anything that was allowed.
TEST_P(Dominance, SixteenBitsAreAdvisedOnlyForTheirBytes) {
  request_.allowed = Allowance();
  request_.budget = Bytes(1000);
  const Bytes smallest = find_frontier(request_, backend_).points.front().planned_peak_bytes;
  try {
    fit(request_, backend_);
    ADD_FAILURE() << "it fitted";
  } catch (const DoesNotFit& error) {
    EXPECT_EQ(error.smallest_budget_bytes(), smallest.count());
    const std::string text = error.what();
    const std::size_t at = text.find("precision (about ");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_LT(std::stod(text.substr(at + 17)) * (text.find(" KB", at) < text.find(" MB", at) ? 1e3 : 1e6),
              static_cast<double>(smallest.count()));
  }
}

TEST_P(Dominance, AllThatIsNeededFitsTheFasterIsTaken) {
  request_.budget = Bytes(std::int64_t{1} << 40U);
  EXPECT_EQ(fit(request_, backend_).point.methods.precision == DType::bf16, GetParam().bf16 >= 1);
}

INSTANTIATE_TEST_SUITE_P(Speeds, Dominance,
                         ::testing::Values(Case{"small-cnn", 40, 0.3}, Case{"small-cnn", 40, 1.9}, Case{"wrn-10-1", 20, 0.53},
                                           Case{"wrn-10-1", 20, 1.9}, Case{"wrn-10-1", 20, 0.53, true}),
                         [](const auto& test) {
                           std::string name = test.param.model + std::to_string(static_cast<int>(100 * test.param.bf16));
                           std::erase(name, '-');
                           return name + (test.param.compresses ? "compressed" : "");
                         });

}  // namespace
}  // namespace snug::testing
