// Checkpointing in plans: fewer bytes for more FLOPs.
#include <gtest/gtest.h>

#include "plan/fit.h"
#include "support/accepting_backend.h"
#include "zoo_models.h"

namespace snug::testing {
namespace {

Plan plan_of(const ZooModel& model, std::string_view strategy, const Backend& backend, std::int64_t batch = 8) {
  return compile(build(model, batch), backend, {.methods = {.checkpoint = parse_checkpoint_strategy(strategy)}});
}

double transient_bytes(const Plan& plan) {
  return static_cast<double>((plan.planned_peak_bytes - plan.persistent_bytes).count());
}

struct FewerBytes {
  ZooModel model;
  std::string strategy;
  double share;  // at most this much of the transient bytes of plain training
};

void PrintTo(const FewerBytes& test, std::ostream* out) { *out << test.model.name << " " << test.strategy; }

class CheckpointedPlans : public ::testing::TestWithParam<FewerBytes> {};

TEST_P(CheckpointedPlans, TakeFewerBytes) {
  const AcceptingBackend backend;
  const Plan plain = plan_of(GetParam().model, "none", backend);
  const Plan plan = plan_of(GetParam().model, GetParam().strategy, backend);
  EXPECT_EQ(find_violation(plan), std::nullopt);
  EXPECT_EQ(plan.persistent_bytes, plain.persistent_bytes);
  EXPECT_LT(plan.planned_peak_bytes, plain.planned_peak_bytes);
  EXPECT_LE(transient_bytes(plan) / transient_bytes(plain), GetParam().share);
}

INSTANTIATE_TEST_SUITE_P(Zoo, CheckpointedPlans,
                         ::testing::Values(FewerBytes{{"small-cnn"}, "sqrt", 0.94}, FewerBytes{{"small-cnn"}, "every-2", 0.9},
                                           FewerBytes{{"wrn-10-1"}, "sqrt", 0.6}, FewerBytes{{"wrn-10-1"}, "no-bn", 0.6},
                                           FewerBytes{{"wrn-10-1"}, "residual-1*", 0.44}, FewerBytes{{"wrn-28-2"}, "no-bn", 0.52},
                                           FewerBytes{{"wrn-28-2"}, "sqrt", 0.32}, FewerBytes{{"wrn-28-2"}, "log", 0.22},
                                           FewerBytes{{"wrn-28-2"}, "every-2", 0.34},
                                           FewerBytes{{"wrn-28-2"}, "residual-2", 0.32},
                                           FewerBytes{{"wrn-28-2"}, "residual-2*", 0.18},
                                           FewerBytes{{"vgg-16", 64}, "sqrt", 0.98}, FewerBytes{{"resnet-18", 64}, "sqrt", 0.5},
                                           FewerBytes{{"resnet-18", 64}, "residual-1", 0.48},
                                           FewerBytes{{"wrn-28-2"}, "greedy:6MB", 0.21}));

TEST(CheckpointedFit, KnowsWhatPlainTrainingTakes) {
  const AcceptingBackend backend;
  FitRequest request{.model = [](std::int64_t size) { return build({"wrn-10-1"}, size); }, .options = {.batch = 20}};
  const Fit plain = fit(request, backend);
  request.given.checkpoint = parse_checkpoint_strategy("sqrt");
  const Fit less = fit(request, backend);
  EXPECT_LT(less.plan.planned_peak_bytes, plain.plan.planned_peak_bytes);
  EXPECT_EQ(less.plain_peak_bytes, plain.plain_peak_bytes);
  EXPECT_EQ(plain.plain_peak_bytes, plain.plan.planned_peak_bytes);
  // A budget that only the checkpointed plan keeps is kept without a smaller microbatch.
  request.budget = less.plan.planned_peak_bytes;
  EXPECT_EQ(fit(request, backend).plan.program.microbatch, 20);
}

}  // namespace
}  // namespace snug::testing
