#include "api/explain_run.h"

#include <algorithm>
#include <string_view>

#include "api/costs.h"
#include "api/prepare.h"
#include "api/trained_data.h"
#include "base/error.h"
#include "ir/op.h"
#include "report/layers.h"

namespace snug {

namespace {

constexpr std::string_view kAsPlanned = "as planned";

template <typename Predicate>
bool has_node(const Plan& plan, const Predicate& predicate) {
  const Section* micro = plan.program.find_section(SectionKind::micro);
  return micro != nullptr && std::any_of(micro->nodes.begin(), micro->nodes.end(), predicate);
}

// What was packed comes back without being computed again.
bool recomputes(const Plan& plan) {
  return has_node(plan, [](const Node& node) {
    return node.phase == Phase::recompute && node.op->packing != Packing::unpacks && !node.op->is_view;
  });
}

}  // namespace

std::string checkpoint_of(const settings::Recipe& recipe, const Plan& plan) {
  if (recipe.checkpoint) return *recipe.checkpoint;
  return recomputes(plan) ? std::string(kAsPlanned) : "none";
}

RunExplanation explain_run(const settings::Recipe& chosen, const Plan& plan) {
  const std::string checkpoint = checkpoint_of(chosen, plan);
  if (checkpoint == kAsPlanned) throw UserError("the run's plan came from a file, which does not say how it was made");
  const Backend backend = open_backend(chosen);
  // The recipe as it was asked for: what the solver was allowed to choose, it chose.
  settings::Recipe recipe = chosen;
  const Allowance allowed = parse_allowance(recipe.allow);
  const bool narrowed =
      allowed.has(Exactness::precision) && recipe.precision == narrower_precision(recipe.device) && !recipe.rounding;
  if (narrowed) recipe.precision = "fp32";
  const std::optional<double> nonzero = allowed.has(Exactness::sparse) ? recipe.sparse.nonzero : std::nullopt;
  if (nonzero) recipe.sparse.nonzero.reset();
  FitRequest request = fit_request(recipe, description_of(recipe, plan), find_costs(std::nullopt, backend).table());
  request.microbatch.reset();
  request.checkpoint.reset();
  request.options.workspace_limit.reset();
  if (request.allowed.has(Exactness::compressed)) request.options.compress_bits = 0;  // the solver's choice
  const FrontierPoint point{.planned_peak_bytes = plan.planned_peak_bytes,
                            .seconds = step_seconds(request.options.costs, plan.program),
                            .microbatch = plan.program.microbatch,
                            .checkpoint = parse_checkpoint_strategy(checkpoint),
                            .workspace_limit = recipe.workspace_limit,
                            .compress_bits = report::compress_bits(plan.program),
                            .fuses_update = has_node(plan, [](const Node& node) { return node.phase == Phase::update; }),
                            .narrowed = narrowed,
                            .nonzero = nonzero};
  return {.frontier = find_frontier(request, backend), .steps = explain(request, point, backend)};
}

}  // namespace snug
