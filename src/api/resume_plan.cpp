#include "api/resume_plan.h"

#include <algorithm>

#include "api/prepare.h"
#include "base/error.h"
#include "io/plan_file.h"

namespace snug {

namespace {

// What a run may no longer choose: it has weights of one precision and one pattern by now, and its activations' bits are settled.
void settle(settings::Recipe& recipe) {
  recipe.methods.precision = recipe.methods.precision.value_or(DType::f32);
  recipe.methods.nonzero = recipe.methods.nonzero.value_or(1);
  if (!recipe.methods.compress_bits) std::erase(recipe.allow, "compressed");
  if (recipe.allow.empty()) recipe.allow = settings::Recipe().allow;
}

Plan plan_again(settings::Recipe recipe, const data::Description& data, const Backend& backend, const CostTable& costs) {
  settle(recipe);
  if (recipe.budget_bytes) {
    // What was best for other kernels in this budget need not be here. Which strategy recomputes and where weights are updated
    // changes no bit; another microbatch would.
    recipe.methods.checkpoint.reset();
    recipe.methods.fuse_update.reset();
    recipe.methods.workspace_limit.reset();
  }
  return fit_recipe(recipe, data, backend, costs).plan;
}

// The text without what says where it was made.
std::string unsigned_text(Plan plan) {
  plan.methods = {};
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
  const Program here = lower_model(request.model(plan.program.microbatch), backend, options_for(request, request.given));
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
      own->methods = methods_of(*own, recipe.methods);  // earlier versions did not say them
      own->made_for = backend.made_for();
      return {.plan = std::move(*own), .made_again_because = ""};
    }
    misfit = *found;
  } catch (const UserError& error) {
    misfit = error.what();  // of a version whose plans this one cannot read
  }
  settings::Recipe asked = recipe;
  if (own) asked.methods = methods_of(*own, recipe.methods);
  // A plan from a file that keeps to a limit, or does not say how it was made, keeps to its bytes, though no budget says so.
  const Methods& made = asked.methods;
  const bool is_bound_by_plan =
      own && !recipe.budget_bytes && (!made.checkpoint || made.checkpoint->limit > Bytes(0) || made.workspace_limit);
  if (is_bound_by_plan) asked.budget_bytes = own->planned_peak_bytes;
  Plan plan = [&] {
    try {
      return plan_again(asked, data, backend, costs);
    } catch (const DoesNotFit&) {
      if (!is_bound_by_plan) throw;
      asked.budget_bytes.reset();
      return plan_again(asked, data, backend, costs);
    }
  }();
  if (own && unsigned_text(*own) == unsigned_text(plan)) misfit.clear();
  return {.plan = std::move(plan), .made_again_because = misfit};
}

}  // namespace snug
