#include "plan/ladder.h"

#include <gtest/gtest.h>

#include "analysis/cost.h"
#include "frontend/zoo.h"
#include "support/accepting_backend.h"

namespace snug {
namespace {

Graph small_cnn(std::int64_t microbatch) { return frontend::build_zoo_model("small-cnn", {.batch = microbatch}); }

TEST(Ladder, GoesFromThePlainPlanToThisOneMethodByMethod) {
  const testing::AcceptingBackend backend;
  const CompileOptions options{.batch = 20, .checkpoint = parse_checkpoint_strategy("every-2")};
  const Plan plan = compile(small_cnn(5), backend, options);
  const std::vector<Rung> rungs = find_ladder(small_cnn, options, plan, backend);
  ASSERT_GE(rungs.size(), 4U);

  const CompileOptions plain{.batch = 20, .passes = {.disabled = {"accumulate_in_place", "share_bytes"}}};
  EXPECT_EQ(rungs.front().planned_peak_bytes, compile(small_cnn(20), backend, plain).planned_peak_bytes);
  EXPECT_EQ(rungs[rungs.size() - 2].method, "microbatches of 5");
  EXPECT_EQ(rungs[rungs.size() - 2].planned_peak_bytes, compile(small_cnn(5), backend, {.batch = 20}).planned_peak_bytes);
  EXPECT_EQ(rungs.back().method, "checkpointing every-2");
  EXPECT_EQ(rungs.back().planned_peak_bytes, plan.planned_peak_bytes);
  EXPECT_EQ(rungs.back().seconds, step_seconds(options.costs, plan.program));
  EXPECT_LT(rungs.back().planned_peak_bytes, rungs.front().planned_peak_bytes);
}

TEST(Ladder, AMethodThatIsTurnedOffIsNoRung) {
  const testing::AcceptingBackend backend;
  const CompileOptions options{.batch = 8, .passes = {.disabled = {"share_bytes"}}};
  const Plan plan = compile(small_cnn(8), backend, options);
  const std::vector<Rung> rungs = find_ladder(small_cnn, options, plan, backend);
  ASSERT_EQ(rungs.size(), 2U);
  EXPECT_EQ(rungs.back().planned_peak_bytes, plan.planned_peak_bytes);
}

TEST(Ladder, OfAPlanWithoutAnyMethodHasOneRung) {
  const testing::AcceptingBackend backend;
  const CompileOptions options{.batch = 8, .passes = {.disabled = {"share_bytes", "accumulate_in_place"}}};
  const std::vector<Rung> rungs = find_ladder(small_cnn, options, compile(small_cnn(8), backend, options), backend);
  EXPECT_EQ(rungs.size(), 1U);
}

}  // namespace
}  // namespace snug
