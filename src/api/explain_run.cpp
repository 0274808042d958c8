#include "api/explain_run.h"

#include "api/costs.h"
#include "api/prepare.h"
#include "api/trained_data.h"
#include "base/error.h"
#include "settings/knobs.h"

namespace snug {

namespace {

// The recipe as it was asked for: what the solver was allowed to choose, it chose. How the batch is split and what is recomputed
// is always asked anew: plans are compared whatever they do there.
settings::Recipe without_choices(settings::Recipe recipe) {
  const Allowance allowed = parse_allowance(recipe.allow);
  for (const settings::Knob& knob : settings::knobs()) {
    if (!knob.is_chosen) continue;
    const bool is_rounded = knob.exactness == Exactness::precision && recipe.rounding;  // which fp32 is not
    if (*knob.exactness <= Exactness::microbatch || (allowed.has(*knob.exactness) && !is_rounded)) reset(knob, recipe);
  }
  return recipe;
}

}  // namespace

RunExplanation explain_run(const settings::Recipe& chosen, const Plan& plan) {
  FrontierPoint point{.methods = methods_of(plan, chosen.methods), .planned_peak_bytes = plan.planned_peak_bytes};
  if (!point.methods.checkpoint) throw UserError("the run's plan came from a file, which does not say how it was made");
  const Backend backend = open_backend(chosen);
  const settings::Recipe recipe = without_choices(chosen);
  const FitRequest request = fit_request(recipe, description_of(recipe, plan), find_costs(std::nullopt, backend).table());
  point.seconds = step_seconds(request.options.costs, plan.program);
  return {.frontier = find_frontier(request, backend), .steps = explain(request, point, backend)};
}

}  // namespace snug
