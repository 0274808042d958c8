#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>

#include "api/costs.h"
#include "api/prepare.h"
#include "api/resume_plan.h"
#include "api/trained_data.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recipe_flags.h"
#include "cli/stop_signal.h"
#include "io/plan_file.h"
#include "report/json.h"
#include "report/reference_kernels.h"
#include "report/text.h"
#include "settings/knobs.h"
#include "train/data_record.h"
#include "train/overheads.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace snug::cli {

namespace {

using Clock = std::chrono::steady_clock;

// A run put together: what it was told, where it is kept, and the session that trains.
struct Run {
  settings::Recipe recipe;
  train::RunFolder folder;
  std::unique_ptr<data::Dataset> dataset;
  train::LoopSettings settings;
  std::unique_ptr<train::Session> session;
  train::Progress progress;
  std::optional<Bytes> plain_peak_bytes;  // of the whole batch at once
  std::optional<double> predicted_step_seconds;
  std::string costs;  // what that was predicted from
  std::vector<report::ReferenceNode> reference_kernels;
};

// runs/MODEL, or the first of runs/MODEL-2, runs/MODEL-3, ... that is not there.
std::filesystem::path free_folder(const std::string& model) {
  std::filesystem::path first = std::filesystem::path("runs") / model;
  if (!std::filesystem::exists(first)) return first;
  for (int number = 2;; ++number) {
    std::filesystem::path next = first.string() + fmt::format("-{}", number);
    if (!std::filesystem::exists(next)) return next;
  }
}

// Read only: a run that is to stay inside its budget does not measure.
Costs costs_of(const Flags& flags, const Backend& backend) {
  Costs costs = find_costs(flags.costs, backend);
  if (!costs.note.empty()) note("snug: " + costs.note);
  return costs;
}

// From the recipe's `init`, if it has one.
void begin_with_weights(const settings::Recipe& recipe, train::Session& session) {
  if (!recipe.init) return;
  const std::string said =
      train::import_weights(*recipe.init, session, {.prefix = recipe.init_prefix.value_or(""), .partial = recipe.init_partial});
  if (!said.empty()) note("snug: " + said);
}

std::vector<report::ReferenceNode> warn_of_reference_kernels(const Plan& plan, const Backend& backend) {
  std::vector<report::ReferenceNode> nodes = report::reference_kernels(plan.program, backend);
  if (const std::string warning = report::reference_kernels_warning(nodes); !warning.empty()) note("snug: " + warning);
  return nodes;
}

// The plan that --plan names says all that these would. Of the form of the model that was planned flags may say the same.
void refuse_flags_beside_plan(const Flags& flags, const settings::Recipe& asked, const settings::Recipe& planned,
                              bool says_form) {
  for (const settings::Knob& knob : settings::knobs()) {
    if (!flags.has(knob.key)) continue;
    if (knob.plan_says == settings::PlanSays::how)
      throw_user_error("the plan in '{}' is run as it is; leave out {}", *flags.plan, knob.flag);
    if (knob.plan_says == settings::PlanSays::form && says_form && !is_same(knob, asked, planned))
      throw_user_error("the plan in '{0}' was made {1} {2}{3}; leave {2} out, or plan again", *flags.plan,
                       is_told(knob, planned) ? "with" : "without", knob.flag,
                       is_told(knob, planned) ? " " + show_value(knob, planned) : "");
  }
}

// The plan to train with, and the recipe with what was chosen for it.
Fit plan_run(const Flags& flags, settings::Recipe& recipe, const data::Description& data, const Backend& backend,
             const CostTable& costs) {
  if (flags.plan) {
    Plan plan = io::read_plan_file(*flags.plan);
    const bool says_form = plan.methods.precision.has_value();
    const Methods& form = recipe.methods;
    plan.methods = methods_of(
        plan, {.precision = form.precision.value_or(DType::f32), .nonzero = form.nonzero, .momentum_bits = form.momentum_bits});
    settings::Recipe planned = recipe;
    planned.methods = plan.methods;
    if (!planned.methods.nonzero) planned.sparse = {};
    refuse_flags_beside_plan(flags, recipe, planned, says_form);
    recipe = std::move(planned);
    plan = adopt_plan(std::move(plan), *flags.plan, recipe, data, backend);
    if (!plan.made_for.empty() && plan.made_for != backend.made_for()) {
      note(fmt::format("snug: the plan in '{}' was made for {}; here it runs on {}, where another may be faster: plan again here",
                       *flags.plan, plan.made_for, backend.made_for()));
    }
    plan.made_for = backend.made_for();
    return {.plan = std::move(plan), .point = {}, .plain_peak_bytes = plain_peak(recipe, data, backend)};
  }
  const FitRequest request = fit_request(recipe, data, costs);
  Fit found = fit(request, backend);
  note_each(unkept_limits(request, found.plan));
  if (recipe.budget_bytes) recipe.methods = found.plan.methods;
  return found;
}

Run begin(const Flags& flags) {
  settings::Recipe recipe = recipe_of(flags);
  std::unique_ptr<data::Dataset> dataset = open_data(recipe);
  note_each(dataset->description().notes);
  loop_settings(recipe, dataset->description());  // complains before the search
  const Backend backend = open_backend(recipe);
  const Costs costs = costs_of(flags, backend);
  Fit found = plan_run(flags, recipe, dataset->description(), backend, costs.table());
  recipe = with_whole_paths(std::move(recipe));
  train::LoopSettings settings = loop_settings(recipe, dataset->description());
  auto session = std::make_unique<train::Session>(std::move(found.plan), backend, recipe.seed,
                                                  recipe.init ? train::Start::from_file : train::Start::drawn);
  configure(*session, recipe);
  begin_with_weights(recipe, *session);
  // Only a run that can begin leaves a folder behind.
  const std::filesystem::path out = flags.out ? std::filesystem::path(*flags.out) : free_folder(recipe.model);
  train::RunFolder folder = train::RunFolder::create(out, recipe, &session->plan(), &dataset->description());
  train::Progress progress{.data = dataset->description(), .recipe = settings::print_recipe(recipe)};
  const Plan& plan = session->plan();
  const auto predicted = predict_step_seconds(costs, plan, backend);
  return {.recipe = std::move(recipe),
          .folder = std::move(folder),
          .dataset = std::move(dataset),
          .settings = std::move(settings),
          .session = std::move(session),
          .progress = std::move(progress),
          .plain_peak_bytes = found.plain_peak_bytes,
          .predicted_step_seconds = predicted,
          .costs = describe_source(costs),
          .reference_kernels = warn_of_reference_kernels(plan, backend)};
}

// The record of the data that a run goes on with. UserError when the data is no longer what the run was trained on.
data::Description data_to_resume(const train::RunFolder& folder, const train::FoundSnapshot& latest,
                                 const data::Description& now) {
  const std::optional<data::Description> known = latest.snapshot ? latest.snapshot->progress.data : folder.data();
  if (!known) {
    note("snug: this run was begun by a version that kept no record of its data; from now on it has one");
    return now;
  }
  std::optional<std::uint64_t> unreadable;
  if (latest.snapshot) {
    const auto& extras = latest.snapshot->progress.extras;
    if (const auto mark = extras.find(train::kUnreadableExample); mark != extras.end())
      unreadable = std::stoull(mark->second, nullptr, 16);
  }
  data::Description same = train::same_data(*known, now, unreadable);
  if (same != *known) note("snug: the file that could not be read is gone; the run goes on without it");
  return same;
}

Run go_on(const Flags& flags) {
  if (!flags.out) throw UserError("--resume goes on with the run in --out; name its folder, as in --out runs/x --resume");
  train::RunFolder folder = train::RunFolder::resume(*flags.out);
  settings::Recipe recipe = with_whole_paths(recipe_to_resume(flags, folder.recipe()));
  const train::FoundSnapshot latest = folder.find_latest_good();
  for (const std::string& warning : latest.warnings) note("snug: " + warning);
  if (!latest.snapshot && !latest.warnings.empty()) {
    const std::string which =
        latest.warnings.size() == 1
            ? fmt::format("the only snapshot of the run in '{}' is", folder.path().string())
            : fmt::format("all {} snapshots of the run in '{}' are", latest.warnings.size(), folder.path().string());
    throw_user_error("{} damaged; bring one back from a copy, or train again in another folder", which);
  }
  if (latest.snapshot) refuse_other_run(settings::parse_recipe(latest.snapshot->progress.recipe), recipe);
  std::unique_ptr<data::Dataset> dataset = open_data(recipe);
  note_each(dataset->description().notes);
  const data::Description data = data_to_resume(folder, latest, dataset->description());
  train::LoopSettings settings = loop_settings(recipe, data);
  const Backend backend = open_backend(recipe);
  const Costs costs = costs_of(flags, backend);
  ResumedPlan resumed = latest.snapshot ? plan_to_resume(latest.snapshot->plan, recipe, data, backend, costs.table())
                                        : plan_to_resume(io::print_plan(io::read_plan_file_of_run(folder.plan_path())), recipe,
                                                         data, backend, costs.table());
  auto session = std::make_unique<train::Session>(std::move(resumed.plan), backend, recipe.seed,
                                                  latest.snapshot || recipe.init ? train::Start::from_file : train::Start::drawn);
  configure(*session, recipe);
  train::Progress progress;
  if (latest.snapshot) {
    progress = train::load_snapshot(latest.snapshot->path, *session);
  } else {
    begin_with_weights(recipe, *session);
  }
  progress.recipe = settings::print_recipe(recipe);
  progress.data = data;
  if (!resumed.made_again_because.empty()) {
    progress.measured_peak_bytes.reset();  // of another plan
    folder.replace(session->plan());
    note(
        fmt::format("snug: the run's plan does not suit this machine: {}; it was made again from the recipe ({}), so bits differ "
                    "from here on",
                    resumed.made_again_because, format_bytes(session->plan().planned_peak_bytes)));
  }
  folder.replace(recipe);
  folder.replace(data);
  const Bytes plain = plain_peak(recipe, data, backend);
  folder.rewind(session->step());
  note(fmt::format("resuming {} after step {}", folder.path().string(), session->step()));
  const Plan& plan = session->plan();
  const auto predicted = predict_step_seconds(costs, plan, backend);
  return {.recipe = std::move(recipe),
          .folder = std::move(folder),
          .dataset = std::move(dataset),
          .settings = std::move(settings),
          .session = std::move(session),
          .progress = std::move(progress),
          .plain_peak_bytes = plain,
          .predicted_step_seconds = predicted,
          .costs = describe_source(costs),
          .reference_kernels = warn_of_reference_kernels(plan, backend)};
}

std::string percent(double share) { return fmt::format("{:.2f}%", 100 * share); }

// Before the first step: what will be trained, and in how much memory.
std::string opening(const Run& run) {
  const Plan& plan = run.session->plan();
  const data::Description& data = run.dataset->description();
  const auto number = [](std::int64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", report::format_count(count), count == 1 ? one : many);
  };
  std::string out = fmt::format(
      "{} on {}: {}, {}, {}\n", run.recipe.model, data.name, number(data.train_examples, "training image", "training images"),
      number(data.test_examples, "test image", "test images"), number(data.classes, "class", "classes"));
  out += fmt::format("{} of {}", number(static_cast<std::int64_t>(run.settings.total_steps), "step", "steps"),
                     number(plan.program.batch, "example", "examples"));
  if (plan.program.microbatch < plan.program.batch) out += fmt::format(" in microbatches of {}", plan.program.microbatch);
  if (run.recipe.statistics_group) out += fmt::format(", batch norm over groups of {}", *run.recipe.statistics_group);
  const Methods& methods = plan.methods;
  if (methods.precision != DType::f32) out += fmt::format(", {}", precision_name(*methods.precision));
  if (methods.nonzero) out += fmt::format(", {:g}% of the convolutions' weights", 100 * *methods.nonzero);
  if (methods.compress_bits) out += fmt::format(", activations kept in {} bits", *methods.compress_bits);
  out += fmt::format("; planned {}", format_bytes(plan.planned_peak_bytes));
  if (run.recipe.budget_bytes) out += fmt::format(" of {}", format_bytes(*run.recipe.budget_bytes));
  if (const Bytes host = plan.host.planned_peak_bytes; host > Bytes(0))
    out += fmt::format(" and {} of host memory", format_bytes(host));
  if (run.plain_peak_bytes && *run.plain_peak_bytes > plan.planned_peak_bytes) {
    out += fmt::format("; plain training would take {}", format_bytes(*run.plain_peak_bytes));
  }
  if (plan.program.batch > data.train_examples) {
    out += fmt::format("\nthe batch of {} is more than the {} training images: every step takes all of them",
                       report::format_count(plan.program.batch), report::format_count(data.train_examples));
  }
  return out;
}

// "81.2% test accuracy", "test loss 0.5312", "no test accuracy"
std::string ranking_text(const LossFacts& loss, const std::optional<train::Evaluation>& evaluation) {
  const std::string_view name = loss.metrics[loss.ranks_by];
  if (!evaluation) return fmt::format("no test {}", name);
  if (loss.ranks_by == 0) return fmt::format("test {} {}", name, format_loss(evaluation->loss));
  return fmt::format("{} test {}", percent(evaluation->score), name);
}

// The last lines, the one that matters at the very end.
std::string closing(const Run& run, const train::LoopResult& result, double seconds) {
  const LossFacts& loss = *run.session->loss().facts;
  const std::string folder = run.folder.path().string();
  std::string out = fmt::format("{} {} in {}", result.interrupted ? "stopped after" : "done:", counted(result.steps, "step"),
                                format_duration(seconds));
  if (result.units_per_second > 0) out += fmt::format(", {:.0f} {}/s", result.units_per_second, loss.unit);
  out += fmt::format("; kept in {}\n", folder);
  if (result.interrupted) {
    return out + fmt::format("resume with: snug train --out {} --resume\n", folder);
  }
  out += fmt::format("test it with: snug eval {0}    take the weights: snug export {0} --to weights.safetensors\n", folder);
  if (const auto driver = run.session->executor().driver_memory_beside_arena()) out += train::describe(*driver) + "\n";
  out += ranking_text(loss, result.last_evaluation);
  out += result.measured_peak_bytes ? fmt::format(" in {}", format_bytes(*result.measured_peak_bytes))
                                    : fmt::format(" in {} as planned", format_bytes(run.session->plan().planned_peak_bytes));
  if (run.recipe.budget_bytes) out += fmt::format(" of the {} given", format_bytes(*run.recipe.budget_bytes));
  if (result.measured_host_bytes) out += fmt::format(" and {} of host memory", format_bytes(*result.measured_host_bytes));
  if (run.plain_peak_bytes) out += fmt::format("; plain training would take {}", format_bytes(*run.plain_peak_bytes));
  return out + "\n";
}

nlohmann::ordered_json result_json(const Run& run, const train::LoopResult& result, double seconds) {
  const Plan& plan = run.session->plan();
  nlohmann::ordered_json json = report::plan_json(plan, {.statistics_group = run.recipe.statistics_group.value_or(0),
                                                         .budget = run.recipe.budget_bytes,
                                                         .backend = run.recipe.device,
                                                         .threads = thread_count(static_cast<int>(run.recipe.threads)),
                                                         .predicted_step_seconds = run.predicted_step_seconds,
                                                         .costs = run.costs,
                                                         .reference_kernels = run.reference_kernels});
  json["data"] = run.dataset->description().name;
  json["run"] = run.folder.path().string();
  json["steps"] = result.steps;
  json["interrupted"] = result.interrupted;
  json["seconds"] = seconds;
  if (run.plain_peak_bytes) json["plain_peak_bytes"] = run.plain_peak_bytes->count();
  json["measured_peak_bytes"] = nullptr;
  if (result.measured_peak_bytes) json["measured_peak_bytes"] = result.measured_peak_bytes->count();
  if (plan.host.planned_peak_bytes > Bytes(0)) json["measured_host_bytes"] = nullptr;
  if (result.measured_host_bytes) json["measured_host_bytes"] = result.measured_host_bytes->count();
  const LossFacts& loss = *run.session->loss().facts;
  json[throughput_of(plan.program).field()] = result.units_per_second;
  train::put_overheads(json, train::measure_overheads(*run.session));
  json["peak_mapped_bytes"] = process_memory().peak_mapped.count();
  if (result.train_loss) json[fmt::format("train_{}", loss.metrics[0])] = *result.train_loss;
  if (result.loss_scale) {
    json["loss_scale"] = result.loss_scale->scale;
    json["skipped_steps"] = result.loss_scale->skipped_steps;
  }
  if (result.last_evaluation) {
    json[fmt::format("test_{}", loss.metrics[0])] = result.last_evaluation->loss;
    if (!loss.metrics[1].empty()) json[fmt::format("test_{}", loss.metrics[1])] = result.last_evaluation->score;
  }
  if (result.best_metric) json[fmt::format("best_test_{}", loss.metrics[loss.ranks_by])] = *result.best_metric;
  return json;
}

}  // namespace

void run_train(const Flags& flags) {
  const StopSignal stop;
  const auto start = Clock::now();
  Run run = flags.resume ? go_on(flags) : begin(flags);
  const std::string first_lines = opening(run);
  note(first_lines);
  run.folder.log(first_lines);
  const Bytes planned = run.session->plan().planned_peak_bytes;
  train::LoopResult result;
  {
    TrainingProgress progress(planned, run.recipe.budget_bytes.value_or(planned), *run.session->loss().facts);
    try {
      result = train::run_loop(*run.session, *run.dataset, run.settings, run.progress, run.folder, progress, stop.asked());
    } catch (const io::DiskFull& full) {
      throw_user_error("{}, then go on with: snug train --out {} --resume", full.fact(), run.folder.path().string());
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::string last_lines = closing(run, result, seconds);
  run.folder.log(last_lines);
  if (flags.json) {
    write_json(result_json(run, result, seconds));
  } else {
    write_out(last_lines);
  }
  if (result.interrupted) throw Interrupted(stop.signal());
}

}  // namespace snug::cli
