// Compression in the solver: only where it is allowed or given, and then part of every promise about budgets.
#include <algorithm>

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "ops/ops.h"
#include "plan/explain.h"
#include "plan/fit.h"
#include "support/accepting_backend.h"
#include <snug/error.h>

namespace snug::testing {
namespace {

FitRequest request_for(const std::string& allowed, std::optional<std::int64_t> bits = {}) {
  return {.model = [](std::int64_t microbatch) { return frontend::build_zoo_model("wrn-10-1", {.batch = microbatch}); },
          .options = {.batch = 12},
          .given = {.compress_bits = bits},
          .min_microbatch = 4,
          .allowed = parse_allowance(allowed)};
}

int packs_of(const Plan& plan) {
  const Section& micro = *plan.program.find_section(SectionKind::micro);
  return static_cast<int>(
      std::count_if(micro.nodes.begin(), micro.nodes.end(), [](const Node& node) { return node.op == &ops::pack; }));
}

std::vector<std::int64_t> widths_of(const Frontier& frontier) {
  std::vector<std::int64_t> widths;
  for (const FrontierPoint& point : frontier.points) widths.push_back(point.methods.compress_bits.value_or(0));
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

TEST(CompressedPlans, AreChosenOnlyWhereTheRungIsAllowed) {
  const AcceptingBackend backend;
  const Frontier exact = find_frontier(request_for("exact"), backend);
  EXPECT_EQ(widths_of(exact), std::vector<std::int64_t>{0});
  const FitRequest request = request_for("exact,compressed");
  const Frontier compressed = find_frontier(request, backend);
  EXPECT_EQ(widths_of(compressed), (std::vector<std::int64_t>{0, 4}));
  EXPECT_FALSE(compressed.points.back().methods.compress_bits) << "nothing is faster than doing nothing";
  EXPECT_LT(compressed.points.front().planned_peak_bytes, exact.points.front().planned_peak_bytes);
  for (const FrontierPoint& point : compressed.points) {
    const Plan plan = compile_point(request, point, backend);
    EXPECT_EQ(plan.planned_peak_bytes, point.planned_peak_bytes);
    EXPECT_EQ(packs_of(plan) > 0, point.methods.compress_bits.has_value());
  }
}

TEST(CompressedPlans, ABudgetThatExactMethodsCannotKeepIsKeptAndExplained) {
  const AcceptingBackend backend;
  FitRequest request = request_for("exact,compressed");
  request.budget = Bytes(find_frontier(request_for("exact"), backend).points.front().planned_peak_bytes.count() - 1);
  const Fit found = fit(request, backend);
  EXPECT_LE(found.plan.planned_peak_bytes, *request.budget);
  EXPECT_EQ(found.point.methods.compress_bits, 4);
  const std::vector<MethodStep> steps = explain(request, found.point, backend);
  const auto step =
      std::find_if(steps.begin(), steps.end(), [](const MethodStep& s) { return s.method == "activations kept in 4 bits"; });
  ASSERT_NE(step, steps.end());
  EXPECT_LT(step->planned_peak_bytes, (step - 1)->planned_peak_bytes);
  EXPECT_EQ(steps.back().planned_peak_bytes, found.plan.planned_peak_bytes);
}

TEST(CompressedPlans, ARefusalNamesTheRungThatWouldHelp) {
  const AcceptingBackend backend;
  FitRequest request = request_for("exact");
  request.given.checkpoint = CheckpointStrategy{};  // so that activations are what fills it
  request.budget = Bytes(1000);
  try {
    fit(request, backend);
    ADD_FAILURE() << "it fitted";
  } catch (const DoesNotFit& error) {
    EXPECT_NE(std::string(error.what()).find("compressed (about "), std::string::npos) << error.what();
  }
}

TEST(CompressedPlans, AGivenWidthIsObeyedWhateverIsAllowed) {
  const AcceptingBackend backend;
  for (const int bits : {8, 4, 2}) {
    FitRequest request = request_for("exact,compressed", bits);
    EXPECT_EQ(widths_of(find_frontier(request, backend)), std::vector<std::int64_t>{bits});
    const Fit found = fit(request, backend);
    EXPECT_EQ(found.point.methods.compress_bits, bits);
    EXPECT_GT(packs_of(found.plan), 5);
    ASSERT_TRUE(found.plain_peak_bytes.has_value());
    EXPECT_GT(*found.plain_peak_bytes, found.plan.planned_peak_bytes) << "plain is without compression";
    EXPECT_EQ(explain(request, found.point, backend).back().method, "activations kept in " + std::to_string(bits) + " bits");
  }
}

TEST(CompressedPlans, ABackendWithoutTheKernelsIsNotAskedForThem) {
  const AcceptingBackend backend({.missing = {"pack", "unpack"}});
  EXPECT_EQ(widths_of(find_frontier(request_for("exact,compressed"), backend)), std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace snug::testing
