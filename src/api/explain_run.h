// A run's plan among those that could have been made: from the run's folder alone, without its data.
#pragma once

#include <vector>

#include "plan/explain.h"
#include "plan/frontier.h"
#include "settings/recipe.h"

namespace snug {

struct RunExplanation {
  Frontier frontier;              // of the run's model and batch, whatever its microbatch and strategy
  std::vector<MethodStep> steps;  // from everything at once to the run's plan
};

// `chosen`: the run's recipe, with what the solver chose. UserError when it cannot be known here: the run's device is missing, or
// its plan came from a file of an earlier version, which does not say how it was made.
RunExplanation explain_run(const settings::Recipe& chosen, const Plan& plan);

}  // namespace snug
