#include "api/resume_plan.h"

#include <gtest/gtest.h>

#include "api/prepare.h"
#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "io/plan_file.h"
#include "support/messages.h"

namespace snug {

namespace {

const settings::Recipe kRecipe{.model = "small-cnn", .batch = 8};

data::Description digits() {
  return {.name = "embedded", .channels = 3, .height = 32, .width = 32, .classes = 10, .mean = {1, 2, 3}, .std = {1, 1, 1}};
}

Plan plan_for(const Backend& backend, const settings::Recipe& recipe = kRecipe) {
  return fit_recipe(recipe, digits(), backend).plan;
}

TEST(ResumePlan, ThePlanOfThisMachineSuitsIt) {
  const Backend backend = backends::cpu_backend(1);
  EXPECT_EQ(find_misfit(plan_for(backend), kRecipe, digits(), backend), std::nullopt);
}

TEST(ResumePlan, AnotherNumberOfThreadsIsAnotherMachine) {
  const Backend one = backends::cpu_backend(1);
  const Backend two = backends::cpu_backend(2);
  const auto misfit = find_misfit(plan_for(one), kRecipe, digits(), two);
  ASSERT_TRUE(misfit);
  EXPECT_TRUE(support::mentions(*misfit, {one.made_for(), two.made_for()}));
}

// Plans of earlier versions do not say what they were made for. Here plain layouts stand for those of another processor: the
// reference kernels take them here too, but nobody would choose them.
TEST(ResumePlan, AnUnsignedPlanIsJudgedByTheLayoutOfItsWeights) {
  const Backend backend = backends::cpu_backend(1);
  Plan own = plan_for(backend);
  own.made_for.clear();
  EXPECT_EQ(find_misfit(own, kRecipe, digits(), backend), std::nullopt);
  Plan foreign = plan_for(backends::reference_backend(1));
  foreign.made_for.clear();
  ASSERT_NO_THROW(io::check_kernels(foreign, backend));
  EXPECT_TRUE(support::mentions(find_misfit(foreign, kRecipe, digits(), backend).value_or(""), {"'conv1.weight'", "kernels"}));
}

TEST(ResumePlan, APlanThatDoesNotSuitIsMadeAgainWithinItsBudget) {
  const Backend reference = backends::reference_backend(1);
  const Backend backend = backends::cpu_backend(1);
  settings::Recipe recipe = kRecipe;
  recipe.budget_bytes = fit_recipe(kRecipe, digits(), reference).plan.planned_peak_bytes + Bytes(2'000'000);
  const ResumedPlan resumed = plan_to_resume(io::print_plan(plan_for(reference, recipe)), recipe, digits(), backend, CostTable{});
  EXPECT_NE(resumed.made_again_because, "");
  EXPECT_LE(resumed.plan.planned_peak_bytes, *recipe.budget_bytes);
  EXPECT_EQ(resumed.plan.made_for, backend.made_for());
  EXPECT_EQ(find_misfit(resumed.plan, recipe, digits(), backend), std::nullopt);
}

// Where the kernels are the same after all, so is the plan, and nothing is to be said.
TEST(ResumePlan, APlanThatComesOutTheSameIsNotSaidToBeMadeAgain) {
  const Backend backend = backends::cpu_backend(1);
  Plan plan = plan_for(backend);
  plan.made_for = "1 thread, the same processor under another name";
  EXPECT_EQ(plan_to_resume(io::print_plan(plan), kRecipe, digits(), backend, CostTable{}).made_again_because, "");
}

// A run whose small plan came from a file has no budget that says how small; its plan does.
TEST(ResumePlan, APlanFromAFileKeepsToItsBytes) {
  const Backend reference = backends::reference_backend(1);
  const Backend backend = backends::cpu_backend(1);
  settings::Recipe asked{.model = "small-cnn", .batch = 32};
  asked.methods.checkpoint = parse_checkpoint_strategy("sqrt");
  const Plan small = plan_for(reference, asked);
  settings::Recipe recipe = asked;
  recipe.methods.checkpoint.reset();
  recipe.methods.microbatch = 32;
  const Bytes plain = fit_recipe(recipe, digits(), backend).plan.planned_peak_bytes;
  const ResumedPlan resumed = plan_to_resume(io::print_plan(small), recipe, digits(), backend, CostTable{});
  EXPECT_LT(resumed.plan.planned_peak_bytes, plain);
}

TEST(ResumePlan, ATextThatIsNoPlanIsPlannedAgain) {
  const Backend backend = backends::cpu_backend(1);
  const ResumedPlan resumed = plan_to_resume("program of another time\n", kRecipe, digits(), backend, CostTable{});
  EXPECT_TRUE(support::mentions(resumed.made_again_because, {"no placement"}));
  EXPECT_EQ(io::print_plan(resumed.plan), io::print_plan(plan_for(backend)));
}

}  // namespace

}  // namespace snug
