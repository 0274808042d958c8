#include "api/run.h"

#include "api/costs.h"
#include "api/fitting_threads.h"
#include "api/prepare.h"
#include "api/process_budget.h"
#include "api/resume_plan.h"
#include "api/trained_data.h"
#include "base/error.h"
#include "io/plan_file.h"
#include "report/reference_kernels.h"
#include "settings/knobs.h"
#include "settings/optimizer.h"
#include "train/data_record.h"
#include "train/weights.h"

namespace snug {

namespace {

// runs/MODEL, or the first of runs/MODEL-2, runs/MODEL-3, ... that is not there.
std::filesystem::path free_folder(const std::string& model) {
  std::filesystem::path first = std::filesystem::path("runs") / model;
  if (!std::filesystem::exists(first)) return first;
  for (int number = 2;; ++number) {
    std::filesystem::path next = first.string() + fmt::format("-{}", number);
    if (!std::filesystem::exists(next)) return next;
  }
}

void say_each(const std::vector<std::string>& notes, const RunSettings& settings) {
  for (const std::string& note : notes) settings.say(note);
}

// Costs are only read: a run that is to stay inside its budget does not measure.
void say_note(const Costs& costs, const RunSettings& settings) {
  if (!costs.note.empty()) settings.say(costs.note);
}

// From the recipe's `init`, if it has one.
void begin_with_weights(const settings::Recipe& recipe, train::Session& session, const RunSettings& settings) {
  if (!recipe.init) return;
  const std::string said = train::import_weights(
      *recipe.init, session,
      {.prefix = recipe.init_prefix.value_or(""), .partial = recipe.init_partial, .strict = recipe.init_strict});
  if (!said.empty()) settings.say(said);
}

// The recipe then asks for the same plan without a search. What it said beside a method that is not taken goes with that.
void take_methods(const Methods& methods, settings::Recipe& recipe) {
  recipe.methods = methods;
  if (!methods.nonzero) recipe.sparse = {};
  if (methods.statistics_group) recipe.min_microbatch.reset();
}

// The plan that is given says all that these would. Of the form of the model that was planned the same may be told again.
void refuse_beside_plan(const settings::Told& told, const std::filesystem::path& plan, const settings::Recipe& asked,
                        const settings::Recipe& planned, bool says_form, settings::SaidBy said_by) {
  for (const auto& [key, texts] : told) {
    const settings::Knob& knob = settings::knob(key);
    if (knob.plan_says == settings::PlanSays::how)
      throw_user_error("the plan in '{}' is run as it is; leave out {}", plan.string(), name_of(knob, said_by));
    if (knob.plan_says == settings::PlanSays::form && says_form && !is_same(knob, asked, planned)) {
      throw_user_error("the plan in '{0}' was made {1} {2}{3}; leave {2} out, or plan again", plan.string(),
                       is_told(knob, planned) ? "with" : "without", name_of(knob, said_by),
                       is_told(knob, planned) ? " " + show_value(knob, planned) : "");
    }
  }
}

// A plan from a file, made one of this recipe, which then says what the plan does.
Plan plan_from_file(const std::filesystem::path& path, settings::Recipe& recipe, const settings::Told& told,
                    const data::Description& data, const Backend& backend, const RunSettings& settings) {
  Plan plan = io::read_plan_file(path);
  const bool says_form = plan.methods.precision.has_value();
  const Methods& form = recipe.methods;
  plan.methods = methods_of(plan, {.precision = form.precision.value_or(DType::f32),
                                   .nonzero = form.nonzero,
                                   .momentum_bits = form.momentum_bits,
                                   .moment_bits = form.moment_bits,
                                   .statistics_group = form.statistics_group});
  settings::Recipe planned = recipe;
  take_methods(plan.methods, planned);
  recipe.methods = normalized(recipe.methods);
  refuse_beside_plan(told, path, recipe, planned, says_form, settings.said_by);
  if (const auto objection = objection_to_optimizer(planned, *planned.optimizer.kind, settings.said_by)) {
    throw_user_error("the plan in '{}' is for another optimizer: {} {}", path.string(),
                     name_of(settings::knob(objection->key), settings.said_by), objection->sentence);
  }
  recipe = std::move(planned);
  plan = adopt_plan(std::move(plan), path, recipe, data, backend);
  if (!plan.made_for.empty() && plan.made_for != backend.made_for()) {
    settings.say(fmt::format("the plan in '{}' was made for {}; here it runs on {}, where another may be faster: plan again here",
                             path.string(), plan.made_for, backend.made_for()));
  }
  plan.made_for = backend.made_for();
  return plan;
}

struct PlannedHere {
  Backend backend;
  Costs costs;
  Fit fit;
};

// The plan for the recipe's budget; the recipe then says what was chosen.
PlannedHere plan_for_budget(settings::Recipe& recipe, const data::Description& data, const RunSettings& settings) {
  PlannedHere here;
  FitRequest request = fit_request(recipe, data);
  const auto plan = [&](const Backend& backend) {
    here.costs = find_costs(settings.costs, backend);
    request.options.costs = here.costs.table();
    here.fit = fit(request, backend);
  };
  here.backend = open_fitting_backend(recipe, plan, settings.say);
  say_note(here.costs, settings);
  say_each(unkept_limits(request, here.fit.plan), settings);
  if (recipe.budget_bytes) take_methods(here.fit.plan.methods, recipe);
  return here;
}

PlannedHere plan_from_its_file(settings::Recipe& recipe, const settings::Told& told, const data::Description& data,
                               const RunSettings& settings) {
  PlannedHere here{.backend = open_backend(recipe), .costs = {}, .fit = {}};
  here.costs = find_costs(settings.costs, here.backend);
  say_note(here.costs, settings);
  here.fit.plan = plan_from_file(*settings.plan, recipe, told, data, here.backend, settings);
  here.fit.plain_peak_bytes = plain_peak(recipe, data, here.backend);
  return here;
}

// The record of the data that a run goes on with. UserError when the data is no longer what the run was trained on.
data::Description data_to_resume(const train::RunFolder& folder, const train::FoundSnapshot& latest, const data::Description& now,
                                 const RunSettings& settings) {
  const std::optional<data::Description> known = latest.snapshot ? latest.snapshot->progress.data : folder.data();
  if (!known) {
    settings.say("this run was begun by a version that kept no record of its data; from now on it has one");
    return now;
  }
  std::optional<std::uint64_t> unreadable;
  if (latest.snapshot) {
    const auto& extras = latest.snapshot->progress.extras;
    if (const auto mark = extras.find(train::kUnreadableExample); mark != extras.end())
      unreadable = std::stoull(mark->second, nullptr, 16);
  }
  data::Description same = train::same_data(*known, now, unreadable);
  if (same != *known) settings.say("the file that could not be read is gone; the run goes on without it");
  return same;
}

// The newest snapshot that is whole, if the run has any. UserError when all that it has are damaged.
train::FoundSnapshot latest_snapshot(const train::RunFolder& folder, const RunSettings& settings) {
  train::FoundSnapshot latest = folder.find_latest_good();
  say_each(latest.warnings, settings);
  if (latest.snapshot || latest.warnings.empty()) return latest;
  const std::string which =
      latest.warnings.size() == 1
          ? fmt::format("the only snapshot of the run in '{}' is", folder.path().string())
          : fmt::format("all {} snapshots of the run in '{}' are", latest.warnings.size(), folder.path().string());
  throw_user_error("{} damaged; bring one back from a copy, or train again in another folder", which);
}

}  // namespace

void TrainingRun::describe_plan(const Costs& costs, const Backend& backend, const RunSettings& settings) {
  plan_context_ = {.budget = recipe_.budget_bytes,
                   .backend = std::string(backend.name),
                   .threads = backend.threads,
                   .predicted_step_seconds = predict_step_seconds(costs, plan(), backend),
                   .costs = describe_source(costs),
                   .reference_kernels = report::reference_kernels(plan().program, backend)};
  if (const std::string warning = report::reference_kernels_warning(plan_context_.reference_kernels); !warning.empty())
    settings.say(warning);
}

TrainingRun TrainingRun::begin(settings::Recipe recipe, const settings::Told& told, const RunSettings& settings) {
  recipe = with_optimizer(std::move(recipe), settings.said_by);
  if (recipe.process_budget) {
    if (settings.plan)
      throw UserError("a plan from a file has its bytes already; leave out --process-budget, or make a plan here");
    recipe.budget_bytes = arena_budget(recipe, settings);
  }
  std::unique_ptr<data::Dataset> dataset = open_data(recipe);
  const data::Description& data = dataset->description();
  say_each(data.notes, settings);
  loop_settings(recipe, data);  // complains before the search
  PlannedHere here = settings.plan ? plan_from_its_file(recipe, told, data, settings) : plan_for_budget(recipe, data, settings);
  recipe = with_whole_paths(std::move(recipe));
  auto session = std::make_unique<train::Session>(std::move(here.fit.plan), here.backend, recipe.seed,
                                                  recipe.init ? train::Start::from_file : train::Start::drawn);
  configure(*session, recipe);
  begin_with_weights(recipe, *session, settings);
  const std::filesystem::path folder = settings.folder.empty() ? free_folder(recipe.model) : settings.folder;
  TrainingRun run(recipe, train::RunFolder::create(folder, recipe, &session->plan(), &data));
  run.settings_ = loop_settings(recipe, data);
  run.progress_ = {.data = data, .recipe = settings::print_recipe(recipe)};
  run.dataset_ = std::move(dataset);
  run.session_ = std::move(session);
  run.plain_peak_bytes_ = here.fit.plain_peak_bytes;
  run.describe_plan(here.costs, here.backend, settings);
  return run;
}

TrainingRun TrainingRun::resume(const settings::Told& told, const RunSettings& settings) {
  train::RunFolder folder = train::RunFolder::resume(settings.folder);
  const settings::Recipe recipe =
      with_optimizer(with_whole_paths(settings::resumed_recipe(folder.recipe(), told, settings.said_by)), settings.said_by);
  const train::FoundSnapshot latest = latest_snapshot(folder, settings);
  if (latest.snapshot)
    settings::refuse_other_run(with_optimizer(settings::parse_recipe(latest.snapshot->progress.recipe)), recipe);
  std::unique_ptr<data::Dataset> dataset = open_data(recipe);
  for (const auto& [key, texts] : told)
    refuse_for_other_data(settings::knob(key), recipe, dataset->description().kind, settings.said_by);
  say_each(dataset->description().notes, settings);
  const data::Description data = data_to_resume(folder, latest, dataset->description(), settings);
  const std::string saved =
      latest.snapshot ? latest.snapshot->plan : io::print_plan(io::read_plan_file_of_run(folder.plan_path()));
  Costs costs;
  ResumedPlan resumed;
  const auto plan = [&](const Backend& with) {
    costs = find_costs(settings.costs, with);
    resumed = plan_to_resume(saved, recipe, data, with, costs.table());
  };
  const Backend backend = open_fitting_backend(recipe, plan, settings.say);
  say_note(costs, settings);

  TrainingRun run(recipe, std::move(folder));
  run.settings_ = loop_settings(recipe, data);
  run.dataset_ = std::move(dataset);
  run.session_ = std::make_unique<train::Session>(std::move(resumed.plan), backend, recipe.seed,
                                                  latest.snapshot || recipe.init ? train::Start::from_file : train::Start::drawn);
  configure(*run.session_, recipe);
  if (latest.snapshot) {
    run.progress_ = train::load_snapshot(latest.snapshot->path, *run.session_);
  } else {
    begin_with_weights(recipe, *run.session_, settings);
  }
  run.progress_.recipe = settings::print_recipe(recipe);
  run.progress_.data = data;
  if (!resumed.made_again_because.empty()) {
    run.progress_.measured_peak_bytes.reset();  // of another plan
    run.folder_.replace(run.plan());
    settings.say(fmt::format(
        "the run's plan does not suit this machine: {}; it was made again from the recipe ({}), so bits differ from here on",
        resumed.made_again_because, format_bytes(run.plan().planned_peak_bytes)));
  }
  run.folder_.replace(recipe);
  run.folder_.replace(data);
  run.plain_peak_bytes_ = plain_peak(recipe, data, backend);
  run.folder_.rewind(run.session_->step());
  settings.say(fmt::format("resuming {} after step {}", run.folder_.path().string(), run.session_->step()));
  run.describe_plan(costs, backend, settings);
  return run;
}

train::LoopResult TrainingRun::train(train::LoopListener& listener, const std::atomic<bool>& stop) {
  try {
    return train::run_loop(*session_, *dataset_, settings_, progress_, folder_, listener, stop);
  } catch (const io::DiskFull& full) {
    throw_user_error("{}, then go on with: snug train --out {} --resume", full.fact(), folder_.path().string());
  }
}

}  // namespace snug
