// The plan that a run goes on with. Its own, wherever it suits the kernels here, since another would give other bits; one made
// again from the recipe where the run came to another processor, library or number of threads.
#pragma once

#include <optional>
#include <string>

#include "analysis/cost.h"
#include "data/dataset.h"
#include "ir/kernel.h"
#include "plan/plan.h"
#include "settings/recipe.h"

namespace snug {

// How the recipe's plan, made with these kernels, would differ from this one: one sentence about the first thing that does not
// suit; nothing when the plan can go on as it is.
std::optional<std::string> find_misfit(const Plan& plan, const settings::Recipe& recipe, const data::Description& data,
                                       const Backend& backend);

struct ResumedPlan {
  Plan plan;
  std::string made_again_because;  // empty: it is the run's own
};

// `saved` is the run's plan as plan_file.h has it. Made again it takes at most the recipe's budget, and trains with the same
// microbatch, in the same precision, with as many weights; DoesNotFit when that is not possible with these kernels.
ResumedPlan plan_to_resume(const std::string& saved, const settings::Recipe& recipe, const data::Description& data,
                           const Backend& backend, const CostTable& costs);

}  // namespace snug
