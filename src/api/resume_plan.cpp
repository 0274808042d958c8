#include "api/resume_plan.h"

#include <algorithm>

#include "api/explain_run.h"
#include "api/prepare.h"
#include "base/error.h"
#include "io/plan_file.h"

namespace snug {

namespace {

// What a run may no longer choose: it has weights of one precision and one pattern by now, and its activations' bits are settled.
void settle(settings::Recipe& recipe, FitRequest& request) {
  request.in_16_bits.reset();
  request.share_is_given = true;
  if (!recipe.compress) {
    std::erase(recipe.allow, "compressed");
    request.allowed = recipe.allow.empty() ? Allowance() : parse_allowance(recipe.allow);
  }
}

Plan plan_again(settings::Recipe recipe, const data::Description& data, const Backend& backend, const CostTable& costs) {
  FitRequest request = fit_request(recipe, data, costs);
  settle(recipe, request);
  if (recipe.budget_bytes) {
    // What was best for other kernels in this budget need not be here. Which strategy recomputes changes no bit; another
    // microbatch would.
    request.checkpoint.reset();
    request.options.workspace_limit.reset();
  }
  return fit(request, backend).plan;
}

// The text without what says where it was made.
std::string unsigned_text(Plan plan) {
  plan.form.reset();
  plan.made_for.clear();
  return io::print_plan(plan);
}

}  // namespace

std::optional<std::string> find_misfit(const Plan& plan, const settings::Recipe& recipe, const data::Description& data,
                                       const Backend& backend) {
  if (!plan.made_for.empty() && plan.made_for != backend.made_for())
    return fmt::format("it was planned for {} and goes on with {}", plan.made_for, backend.made_for());
  if (auto misfit = io::find_kernel_misfit(plan, backend)) return misfit;
  if (!plan.made_for.empty()) return std::nullopt;
  // A plan of a version that did not say what it was made for: kernels may take weights in a foreign layout, but at a crawl.
  const FitRequest request = fit_request(recipe, data);
  const Program here = lower_model(request.model(plan.program.microbatch), backend, request.options);
  for (const State& state : plan.program.states) {
    const StateId same = here.find_state(state.name);
    if (same.valid() && here.state(same).type != state.type)
      return fmt::format("'{}' was laid out for other kernels", state.name);
  }
  return std::nullopt;
}

ResumedPlan plan_to_resume(const std::string& saved, const settings::Recipe& recipe, const data::Description& data,
                           const Backend& backend, const CostTable& costs) {
  std::optional<Plan> own;
  std::string misfit;
  try {
    own = io::parse_plan(saved);
    const auto found = find_misfit(*own, recipe, data, backend);
    if (!found) {
      sign(*own, recipe, backend);  // earlier versions did not
      return {.plan = std::move(*own), .made_again_because = ""};
    }
    misfit = *found;
  } catch (const UserError& error) {
    misfit = error.what();  // of a version whose plans this one cannot read
  }
  settings::Recipe asked = recipe;
  // A plan that came from a file keeps to its bytes, though no budget says so.
  const bool is_bound_by_plan = own && !recipe.budget_bytes && !recipe.checkpoint && checkpoint_of(recipe, *own) != "none";
  if (is_bound_by_plan) asked.budget_bytes = own->planned_peak_bytes;
  Plan plan = [&] {
    try {
      return plan_again(asked, data, backend, costs);
    } catch (const DoesNotFit&) {
      if (!is_bound_by_plan) throw;
      return plan_again(recipe, data, backend, costs);
    }
  }();
  sign(plan, recipe, backend);
  if (own && unsigned_text(*own) == unsigned_text(plan)) misfit.clear();
  return {.plan = std::move(plan), .made_again_because = misfit};
}

}  // namespace snug
