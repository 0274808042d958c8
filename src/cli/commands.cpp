#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/costs.h"
#include "api/fitting_threads.h"
#include "api/prepare.h"
#include "base/error.h"
#include "base/nearest.h"
#include "cli/output.h"
#include "cli/recipe_flags.h"
#include "io/file_io.h"
#include "io/plan_file.h"
#include "plan/explain.h"
#include "plan/fit.h"
#include "report/frontier.h"
#include "report/json.h"
#include "report/kernels.h"
#include "report/page.h"
#include "report/reference_kernels.h"
#include "report/text.h"
#include "report/timeline.h"
#include "report/torch_snapshot.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

// What the flags ask for, and its plan.
struct Planned {
  FitRequest request;
  Fit fit;
  Backend backend;
  report::PlanContext context;
};

// As the flags say: read, or measured first.
Costs costs_of(const Flags& flags, const FitRequest& request, const Backend& backend) {
  Costs costs = flags.measure_costs ? find_costs_to_measure(flags.costs, backend) : find_costs(flags.costs, backend);
  if (!costs.note.empty()) note("snug: " + costs.note);
  if (flags.measure_costs) measure_costs(request, backend, costs, note);
  return costs;
}

// The recipe that the flags make. A recipe's file always says its data, by leaving it out too; without one, data that was not
// named is random images of the model's own shape.
Planned make_plan(const Flags& flags, const PassOptions& passes) {
  if (!names_recipe(flags)) examples_of(flags);  // says what is missing
  settings::Recipe recipe = recipe_of(flags);
  const bool has_data = flags.has("data") || names_recipe(flags);
  if (!has_data) recipe.data = "random";
  const data::Description data = has_data ? open_data(recipe)->description() : random_description(recipe);
  note_each(data.notes);
  FitRequest request = fit_request(recipe, data);
  request.options.passes = passes;
  Costs costs;
  Fit found;
  const auto plan = [&](const Backend& backend) {
    costs = costs_of(flags, request, backend);
    request.options.costs = costs.table();
    found = fit(request, backend);
  };
  Backend backend = open_fitting_backend(recipe, plan, [](const std::string& said) { note("snug: " + said); });
  note_each(unkept_limits(request, found.plan));
  report::PlanContext context{.budget = recipe.budget_bytes,
                              .backend = std::string(backend.name),
                              .threads = backend.threads,
                              .predicted_step_seconds = predict_step_seconds(costs, found.plan, backend),
                              .costs = describe_source(costs),
                              .reference_kernels = report::reference_kernels(found.plan.program, backend)};
  if (const std::string warning = report::reference_kernels_warning(context.reference_kernels); !warning.empty())
    note("snug: " + warning);
  return {.request = std::move(request), .fit = std::move(found), .backend = std::move(backend), .context = std::move(context)};
}

void refuse_beside_dump(const Flags& flags) {
  const std::array<std::pair<bool, std::string_view>, 5> others{{{flags.json, "--json"},
                                                                 {flags.kernels, "--kernels"},
                                                                 {flags.explain, "--explain"},
                                                                 {flags.html.has_value(), "--html"},
                                                                 {flags.torch_snapshot.has_value(), "--torch-snapshot"}}};
  for (const auto& [given, name] : others) {
    if (given) throw_user_error("--dump-after prints the program and nothing else; leave out {}", name);
  }
}

}  // namespace

Examples examples_of(const Flags& flags) {
  if (!flags.model) {
    throw_user_error("'snug {0}' needs a model, as in 'snug {0} wrn-28-2 --batch 100' (see 'snug {0} --help')", flags.command);
  }
  settings::Recipe recipe;
  for (const std::string_view key : {"batch", "microbatch"}) {
    if (flags.has(key)) take(settings::knob(key), flags.knobs.find(key)->second, recipe);
  }
  const auto microbatch = recipe.methods.microbatch;
  if (microbatch.value_or(1) > recipe.batch)
    throw_user_error("--microbatch {} is more than --batch {}; use at most that", *microbatch, recipe.batch);
  return {.batch = recipe.batch, .microbatch = microbatch};
}

void run_plan(const Flags& flags) {
  if (flags.dump_after) refuse_beside_dump(flags);
  if (flags.timeline && !flags.json) throw UserError("--timeline goes with --json; --html FILE draws the same");
  PassOptions passes{.disabled = flags.disabled_passes};
  std::string program_text;
  if (flags.dump_after) {
    passes.dump_after = *flags.dump_after;
    passes.dump = [&](std::string_view /*pass*/, const std::string& text) { program_text = text; };
  }
  const auto [request, found, backend, context] = make_plan(flags, passes);
  const Plan& plan = found.plan;
  if (flags.save) io::write_plan_file(*flags.save, plan);
  if (flags.torch_snapshot) io::write_text_file(*flags.torch_snapshot, report::torch_snapshot(plan));
  if (flags.dump_after) return write_out(program_text);

  const bool explains = flags.explain || flags.timeline || flags.html;
  const Frontier frontier = explains ? find_frontier(request, backend) : Frontier();
  const std::vector<MethodStep> steps = explains ? explain(request, found.point, backend) : std::vector<MethodStep>();
  Backend limited = backend;  // as it was asked
  limited.workspace_limit = plan.methods.workspace_limit;
  const std::vector<report::KernelUse> kernels =
      flags.kernels ? report::kernels_of(plan.program, limited) : std::vector<report::KernelUse>{};
  if (flags.json || flags.html) {
    nlohmann::ordered_json json = report::plan_json(plan, context);
    if (explains) report::put_explanation(json, frontier, steps);
    if (flags.kernels) {
      json["instructions"] = report::instructions_json(backend);
      json["kernels"] = report::kernels_json(kernels);
    }
    nlohmann::ordered_json drawn = json;
    if (flags.timeline || flags.html) drawn["timeline"] = report::timeline_json(plan);
    if (flags.html) io::write_text_file(*flags.html, report::page(drawn));
    if (flags.json) return write_json(flags.timeline ? drawn : json);
  }
  std::string text = report::plan_text(plan, context);
  if (flags.explain) text += "\n" + report::explanation_text(frontier, found.point, steps);
  if (flags.kernels) text += "\n" + report::instructions_text(backend) + report::kernels_text(kernels);
  if (flags.html) text += fmt::format("\n{}: the memory report; open it in a browser\n", *flags.html);
  write_out(text);
}

void run_profile(const Flags& flags) {
  if (flags.accounting == "paper") return run_paper_profile(flags);
  if (flags.accounting != "real") {
    throw_user_error("--accounting takes real or paper, not '{}'{}", flags.accounting,
                     did_you_mean(flags.accounting, std::array<std::string_view, 2>{"real", "paper"}));
  }
  const auto [request, found, backend, context] = make_plan(flags, {.disabled = flags.disabled_passes});
  if (flags.json) return write_json(report::profile_json(found.plan, context));
  write_out(report::profile_text(found.plan, context));
}

}  // namespace snug::cli
