#include <chrono>
#include <string>

#include "api/run.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recipe_flags.h"
#include "cli/stop_signal.h"
#include "cli/text_sample.h"
#include "report/json.h"
#include "report/text.h"
#include "train/overheads.h"

namespace snug::cli {

namespace {

using Clock = std::chrono::steady_clock;

std::string percent(double share) { return fmt::format("{:.2f}%", 100 * share); }

// Before the first step: what will be trained, and in how much memory.
std::string opening(const TrainingRun& run) {
  const Plan& plan = run.plan();
  const data::Description& data = run.data();
  const auto number = [](std::int64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", report::format_count(count), count == 1 ? one : many);
  };
  const bool of_text = data.kind == data::Kind::text;
  std::string out = fmt::format("{} on {}: ", run.recipe().model, data.name);
  if (of_text) {
    out +=
        fmt::format("{} to train with and {} to test with, of {}; {} of {}\n", number(data.text.train_tokens, "token", "tokens"),
                    report::format_count(data.text.test_tokens), report::format_count(data.text.vocabulary),
                    number(data.train_examples, "example", "examples"), report::format_count(data.text.length));
  } else {
    out += fmt::format("{}, {}, {}\n", number(data.train_examples, "training image", "training images"),
                       number(data.test_examples, "test image", "test images"), number(data.classes, "class", "classes"));
  }
  out += fmt::format("{} of {}", number(static_cast<std::int64_t>(run.total_steps()), "step", "steps"),
                     number(plan.program.batch, "example", "examples"));
  if (plan.program.microbatch < plan.program.batch) out += fmt::format(" in microbatches of {}", plan.program.microbatch);
  out += fmt::format("{}; planned {}", report::inexact_methods(plan.methods), format_bytes(plan.planned_peak_bytes));
  if (run.recipe().budget_bytes) out += fmt::format(" of {}", format_bytes(*run.recipe().budget_bytes));
  if (const Bytes host = plan.host.planned_peak_bytes; host > Bytes(0))
    out += fmt::format(" and {} of host memory", format_bytes(host));
  if (run.plain_peak_bytes() && *run.plain_peak_bytes() > plan.planned_peak_bytes) {
    out += fmt::format("; plain training would take {}", format_bytes(*run.plain_peak_bytes()));
  }
  if (plan.program.batch > data.train_examples) {
    out += fmt::format("\nthe batch of {} is more than the {} training {}: every step takes all of them",
                       report::format_count(plan.program.batch), report::format_count(data.train_examples),
                       of_text ? "examples" : "images");
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
std::string closing(const TrainingRun& run, const train::LoopResult& result, double seconds) {
  const LossFacts& loss = *run.session().loss().facts;
  const std::string folder = run.folder().path().string();
  std::string out = fmt::format("{} {} in {}", result.interrupted ? "stopped after" : "done:", counted(result.steps, "step"),
                                format_duration(seconds));
  if (result.units_per_second > 0) out += fmt::format(", {:.0f} {}/s", result.units_per_second, loss.unit);
  out += fmt::format("; kept in {}\n", folder);
  if (result.interrupted) {
    return out + fmt::format("resume with: snug train --out {} --resume\n", folder);
  }
  out += fmt::format("test it with: snug eval {0}    take the weights: snug export {0} --to weights.safetensors\n", folder);
  if (run.data().kind == data::Kind::text) out += fmt::format("let it write: snug generate {} --prompt 'The '\n", folder);
  if (const auto driver = run.session().executor().driver_memory_beside_arena()) out += train::describe(*driver) + "\n";
  out += ranking_text(loss, result.last_evaluation);
  out += result.measured_peak_bytes ? fmt::format(" in {}", format_bytes(*result.measured_peak_bytes))
                                    : fmt::format(" in {} as planned", format_bytes(run.plan().planned_peak_bytes));
  if (run.recipe().budget_bytes) out += fmt::format(" of the {} given", format_bytes(*run.recipe().budget_bytes));
  if (result.measured_host_bytes) out += fmt::format(" and {} of host memory", format_bytes(*result.measured_host_bytes));
  if (run.plain_peak_bytes()) out += fmt::format("; plain training would take {}", format_bytes(*run.plain_peak_bytes()));
  return out + "\n";
}

nlohmann::ordered_json result_json(const TrainingRun& run, const train::LoopResult& result, double seconds) {
  const Plan& plan = run.plan();
  nlohmann::ordered_json json = report::plan_json(plan, run.plan_context());
  json["data"] = run.data().name;
  json["run"] = run.folder().path().string();
  json["steps"] = result.steps;
  json["interrupted"] = result.interrupted;
  json["seconds"] = seconds;
  if (run.plain_peak_bytes()) json["plain_peak_bytes"] = run.plain_peak_bytes()->count();
  json["measured_peak_bytes"] = nullptr;
  if (result.measured_peak_bytes) json["measured_peak_bytes"] = result.measured_peak_bytes->count();
  if (plan.host.planned_peak_bytes > Bytes(0)) json["measured_host_bytes"] = nullptr;
  if (result.measured_host_bytes) json["measured_host_bytes"] = result.measured_host_bytes->count();
  const LossFacts& loss = *run.session().loss().facts;
  json[throughput_of(plan.program).field()] = result.units_per_second;
  train::put_overheads(json, train::measure_overheads(run.session()));
  if (run.recipe().process_budget) json["process_budget_bytes"] = run.recipe().process_budget->count();
  json["peak_resident_bytes"] = process_memory().peak_resident.count();
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

TrainingRun begin_or_resume(const Flags& flags) {
  const RunSettings settings{.folder = flags.out.value_or(""),
                             .plan = flags.plan,
                             .costs = flags.costs,
                             .said_by = settings::SaidBy::flags,
                             .say = [](const std::string& sentence) { note("snug: " + sentence); }};
  if (!flags.resume) return TrainingRun::begin(recipe_of(flags), flags.knobs, settings);
  if (!flags.out) throw UserError("--resume goes on with the run in --out; name its folder, as in --out runs/x --resume");
  constexpr std::string_view kFixed = "a resumed run follows recipe.toml in its folder; leave out {}";
  if (flags.model) throw_user_error(kFixed, "a model");
  if (flags.plan) throw_user_error(kFixed, "--plan");
  return TrainingRun::resume(flags.knobs, settings);
}

// Trains, and gives the memory of training back; the last lines and what a sample needs remain.
struct Trained {
  std::string last_lines;
  std::string folder;
  bool interrupted, writes_text;
};
Trained train(const Flags& flags, const StopSignal& stop) {
  const auto start = Clock::now();
  TrainingRun run = begin_or_resume(flags);
  const std::string first_lines = opening(run);
  note(first_lines);
  run.folder().log(first_lines);
  const train::LoopResult result = [&] {
    const Bytes planned = run.plan().planned_peak_bytes;
    TrainingProgress progress(planned, run.recipe().budget_bytes.value_or(planned), *run.session().loss().facts);
    return run.train(progress, stop.asked());
  }();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::string last_lines = closing(run, result, seconds);
  run.folder().log(last_lines);
  if (flags.json) write_json(result_json(run, result, seconds));
  return {.last_lines = last_lines,
          .folder = run.folder().path().string(),
          .interrupted = result.interrupted,
          .writes_text = run.data().kind == data::Kind::text};
}

}  // namespace

void run_train(const Flags& flags) {
  const StopSignal stop;
  const Trained trained = train(flags, stop);
  if (!flags.json) {
    if (trained.writes_text && !trained.interrupted) write_sample(trained.folder);
    write_out(trained.last_lines);
  }
  if (trained.interrupted) throw Interrupted(stop.signal());
}

}  // namespace snug::cli
