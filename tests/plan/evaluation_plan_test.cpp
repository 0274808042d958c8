// What evaluation alone takes.
#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "passes/model/evaluate_only.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"

namespace snug::testing {
namespace {

TEST(EvaluationPlan, TakesFarLessThanTraining) {
  const AcceptingBackend backend;
  std::vector<PassTiming> timings;
  const Program lowered = lower_model(frontend::build_zoo_model("wrn-10-1", {.batch = 4}), backend, {});
  const Plan training = place(rewrite(lowered, backend, {}, timings));
  const Plan evaluation = place(rewrite(evaluate_only(lowered), backend, {}, timings));
  EXPECT_EQ(find_violation(evaluation), std::nullopt);
  EXPECT_LT(evaluation.planned_peak_bytes * 2, training.planned_peak_bytes);
}

}  // namespace
}  // namespace snug::testing
