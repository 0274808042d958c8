#include "plan/forms.h"

#include <regex>

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "plan/explain.h"
#include "plan/fit.h"
#include "support/accepting_backend.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::testing {
namespace {

FitRequest request_with(Allowance allowed, const std::string& name = "small-cnn") {
  return {.model = [name](std::int64_t microbatch) { return frontend::build_zoo_model(name, {.batch = microbatch}); },
          .options = {.batch = 40},
          .allowed = allowed,
          .narrow_precision = DType::bf16};
}

Allowance with_precision() { return Allowance().add(Exactness::precision); }

DType stored(const Plan& plan) { return plan.program.state(plan.program.find_state("conv1.weight")).type.dtype; }

class NarrowerTest : public ::testing::Test {
 protected:
  AcceptingBackend backend_;
};

TEST_F(NarrowerTest, IsTakenOnlyWhereItIsAllowedAndOnlyForABudget) {
  EXPECT_EQ(rungs(request_with({}), backend_).size(), 1U);
  EXPECT_EQ(rungs(request_with({}), backend_).front().size(), 1U);
  EXPECT_EQ(stored(fit(request_with(with_precision()), backend_).plan), DType::f32);
  FitRequest plain = request_with({});
  const std::vector<FrontierPoint> points = find_frontier(plain, backend_).points;
  plain.budget = points.front().planned_peak_bytes - Bytes(1);
  EXPECT_THROW(fit(plain, backend_), DoesNotFit);
  FitRequest allowed = request_with(with_precision());
  allowed.budget = plain.budget;
  const Fit found = fit(allowed, backend_);
  EXPECT_EQ(found.point.methods.precision, DType::bf16);
  EXPECT_EQ(stored(found.plan), DType::bf16);
  EXPECT_LE(found.plan.planned_peak_bytes, *allowed.budget);
  EXPECT_EQ(compile_point(allowed, found.point, backend_).planned_peak_bytes, found.plan.planned_peak_bytes);
}

// A batch that fits as a whole only because its activations are compressed has not been spared anything.
TEST_F(NarrowerTest, IsComparedWithCompressedPlansToo) {
  FitRequest request = request_with(with_precision().add(Exactness::compressed));
  for (const FrontierPoint& point : find_frontier(request, backend_).points) {
    request.budget = point.planned_peak_bytes;
    const FrontierPoint found = find_fastest_within(request, backend_).point;
    EXPECT_EQ(found.planned_peak_bytes, point.planned_peak_bytes);
    EXPECT_EQ(found.methods, point.methods);
  }
}

TEST_F(NarrowerTest, BothModelsMakeOneFrontier) {
  const FitRequest allowed = request_with(with_precision());
  const Frontier both = find_frontier(allowed, backend_);
  EXPECT_GT(both.considered.size(), find_frontier(request_with({}), backend_).considered.size());
  EXPECT_EQ(both.points.front().methods.precision, DType::bf16);
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
                                Bytes budget) {
    PlacedPoint other = placed(narrow, narrow_seconds);
    other.point.methods.precision = DType::bf16;
    return better_of(placed(wide, wide_seconds), std::move(other), budget).point.methods.precision == DType::bf16;
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
  request.given.precision = DType::f16;
  for (const FrontierPoint& point : find_frontier(request, backend_).points) EXPECT_NE(point.methods.fuse_update, true);
}

Allowance with_sparse(bool precision = false) {
  Allowance allowed = Allowance().add(Exactness::sparse);
  return precision ? allowed.add(Exactness::precision) : allowed;
}

class SparserTest : public ::testing::Test {
 protected:
  Bytes smallest(const FitRequest& request) { return find_frontier(request, backend_).points.front().planned_peak_bytes; }

  FitRequest request(const Allowance& allowed, std::optional<Bytes> budget = {}) const {
    FitRequest made = request_with(allowed, "wrn-10-1");
    made.options.batch = 20;
    made.budget = budget;
    return made;
  }
  // The smallest of the model with such a share of its weights.
  Bytes smallest_with(double nonzero) {
    FitRequest sparse = request({});
    sparse.given.nonzero = nonzero;
    return smallest(sparse);
  }

  AcceptingBackend backend_;
};

TEST_F(SparserTest, DenseStaysWheneverItFits) {
  const Bytes dense = smallest(request({}));
  const Fit found = fit(request(with_sparse(), dense), backend_);
  EXPECT_FALSE(found.point.methods.nonzero.has_value());
  EXPECT_EQ(found.plan.planned_peak_bytes, dense);
  EXPECT_FALSE(fit(request(with_sparse()), backend_).point.methods.nonzero.has_value()) << "without a budget";
  EXPECT_EQ(fit(request(with_sparse(), dense - Bytes(1)), backend_).point.methods.nonzero, 0.5);
}

TEST_F(SparserTest, TheLeastSparseShareThatFitsIsTaken) {
  for (std::size_t i = 0; i + 1 < kSolverNonzero.size(); ++i) {
    const Bytes least = smallest_with(kSolverNonzero[i]);
    const Fit fits = fit(request(with_sparse(), least), backend_);
    EXPECT_EQ(fits.point.methods.nonzero, kSolverNonzero[i]);
    EXPECT_EQ(fits.plan.planned_peak_bytes, least);
    EXPECT_TRUE(fits.plan.program.find_state("sparse.weight").valid());
    EXPECT_EQ(fit(request(with_sparse(), least - Bytes(1)), backend_).point.methods.nonzero, kSolverNonzero[i + 1]);
  }
}

TEST_F(SparserTest, SixteenBitsComeBeforeSparsityAndGoWithIt) {
  const Bytes narrow = smallest(request(Allowance().add(Exactness::precision)));
  const Fit dense = fit(request(with_sparse(true), narrow), backend_);
  EXPECT_EQ(dense.point.methods.precision, DType::bf16);
  EXPECT_FALSE(dense.point.methods.nonzero.has_value());
  const Fit sparse = fit(request(with_sparse(true), narrow - Bytes(1)), backend_);
  EXPECT_EQ(sparse.point.methods.precision, DType::bf16);
  EXPECT_EQ(sparse.point.methods.nonzero, 0.5);
  EXPECT_EQ(compile_point(request(with_sparse(true)), sparse.point, backend_).planned_peak_bytes, sparse.plan.planned_peak_bytes);
}

TEST_F(SparserTest, TheSmallestBudgetIsExactAndARefusalSaysIt) {
  std::int64_t least = 0;
  try {
    fit(request(with_sparse(true), Bytes(1000)), backend_);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DoesNotFit& error) {
    least = error.smallest_budget_bytes();
    EXPECT_NE(std::string(error.what()).find(", stored with 16 bits, 10% of the convolutions' weights"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(fit(request(with_sparse(true), Bytes(least)), backend_).plan.planned_peak_bytes, Bytes(least));
  EXPECT_THROW(fit(request(with_sparse(true), Bytes(least - 1)), backend_), DoesNotFit);
}

TEST_F(SparserTest, TheFrontierGoesOnWithSparserPlansBelowAllDenserOnes) {
  const Bytes budget = smallest_with(0.3);
  const Frontier frontier = find_frontier(request(with_sparse(), budget), backend_);
  double share = 0;  // of the point before, 1 for dense ones
  for (std::size_t i = 0; i < frontier.points.size(); ++i) {
    const double own = frontier.points[i].methods.nonzero.value_or(1);
    EXPECT_GE(own, share);
    if (i > 0) {
      EXPECT_LT(frontier.points[i - 1].planned_peak_bytes, frontier.points[i].planned_peak_bytes);
    }
    if (i > 0 && own == share) {
      EXPECT_GT(frontier.points[i - 1].seconds, frontier.points[i].seconds);
    }
    share = own;
  }
  EXPECT_EQ(frontier.points.front().methods.nonzero, 0.3) << "no sparser than what fits";
  EXPECT_EQ(share, 1);
  const FrontierPoint chosen = fit(request(with_sparse(), budget), backend_).point;
  const std::vector<MethodStep> steps = explain(request(with_sparse(), budget), chosen, backend_);
  EXPECT_EQ(steps[1].method, "30% of the convolutions' weights");
  EXPECT_EQ(steps.back().planned_peak_bytes, chosen.planned_peak_bytes);
}

TEST_F(SparserTest, ModelsWithoutSuchWeightsSharesThatAreGivenAndBackendsWithoutKernelsStayAsTheyAre) {
  FitRequest given = request(with_sparse());
  given.given.nonzero = 0.7;
  EXPECT_EQ(rungs(given, backend_).size(), 1U);
  FitRequest single = request(with_sparse());
  single.model = [](std::int64_t microbatch) {
    Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = microbatch});
    for (State& state : graph.states) state.trainable = false;
    return graph;
  };
  EXPECT_EQ(rungs(single, backend_).size(), 1U);
  EXPECT_EQ(rungs(request(with_sparse()), backend_).size(), 1 + kSolverNonzero.size());
}

TEST(SparserBackends, WithoutTheKernelsAreNotAskedForThem) {
  const AcceptingBackend backend({.missing = {"sparse_conv2d"}});
  EXPECT_EQ(rungs(request_with(with_sparse(), "wrn-10-1"), backend).size(), 1U);
}

// What a refusal of a model advises, where bf16 is so fast beside fp32.
std::string advice_for(FitRequest request, double bf16) {
  const AcceptingBackend backend;
  request.given.checkpoint = CheckpointStrategy{};  // so that activations count
  request.budget = Bytes(1000);
  request.options.costs = make_cost_table({}, {.bf16 = bf16});
  return support::message_of<DoesNotFit>([&] { fit(request, backend); });
}

TEST(RungsThatHelp, AreNamedWithTheirBytes) {
  const std::string text = advice_for(request_with({}, "wrn-10-1"), 0.5);
  EXPECT_TRUE(std::regex_search(text, std::regex("add precision \\(about [0-9.]+ MB\\), compressed \\(about [0-9.]+ "
                                                 "MB\\) or sparse \\(about [0-9.]+ MB\\) to --allow \\(about [0-9.]+ "
                                                 "(MB|KB) with (both|all) of them\\)")))
      << text;
}

// All weights in 16 bits are smaller here than a tenth of them in 32, and faster; both together are smaller still.
TEST(RungsThatHelp, AreNamedOnlyForWhatTheyAddWhereAMoreExactOneIsSmallerAndFaster) {
  const std::string text = advice_for(request_with({}, "wrn-10-1"), 1.9);
  EXPECT_TRUE(std::regex_search(
      text, std::regex("add precision \\(about [0-9.]+ MB\\) or compressed \\(about [0-9.]+ MB\\) to --allow \\(about [0-9.]+ "
                       "MB with both of them, about [0-9.]+ MB with sparse too\\)")))
      << text;
  // Here neither a tenth of the weights nor activations in 4 bits come near it.
  FitRequest small = request_with({});
  small.given.microbatch = 4;
  EXPECT_TRUE(std::regex_search(advice_for(small, 1.9),
                                std::regex("add precision \\(about [0-9.]+ KB\\) to --allow \\(about [0-9.]+ KB with "
                                           "compressed and sparse too\\)")))
      << advice_for(small, 1.9);
}

}  // namespace
}  // namespace snug::testing
