// A run, seen: its plan and its metrics as one page.
#include <filesystem>

#include "api/explain_run.h"
#include "api/prepare.h"
#include "base/error.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "io/file_io.h"
#include "io/plan_file.h"
#include "report/frontier.h"
#include "report/json.h"
#include "report/page.h"
#include "report/timeline.h"
#include "train/run_folder.h"

namespace snug::cli {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;  // of metrics

// Reads only, and takes no lock: a run that is still training can be looked at.
nlohmann::ordered_json json_of_run(const std::filesystem::path& folder) {
  const settings::Recipe recipe = settings::read_recipe(folder / train::kRecipeFile);
  Plan plan = io::read_plan_file_of_run(folder / train::kPlanFile);
  plan.methods = methods_of(plan, recipe.methods);
  nlohmann::ordered_json json = report::plan_json(
      plan, {.budget = recipe.budget_bytes, .backend = recipe.device, .threads = thread_count(static_cast<int>(recipe.threads))});
  json["timeline"] = report::timeline_json(plan);
  try {
    const RunExplanation explanation = explain_run(recipe, plan);
    report::put_explanation(json, explanation.frontier, explanation.steps);
  } catch (const UserError& error) {
    json["not_explained"] = error.what();  // the page says so
  }
  json["data"] = recipe.data;
  json["run"] = folder.string();
  // A run that was stopped before its first step has none.
  if (std::filesystem::exists(folder / train::kMetricsFile)) {
    const std::string metrics = io::read_text_file(folder / train::kMetricsFile, kMostBytes);
    if (!metrics.empty()) json["training"] = report::training_json(metrics);
  }
  return json;
}

}  // namespace

void run_report(const Flags& flags) {
  if (!flags.folder) {
    throw UserError("'snug report' needs the folder of a run, as in 'snug report runs/wrn-28-2' (see 'snug report --help')");
  }
  const std::filesystem::path folder = *flags.folder;
  if (!std::filesystem::exists(folder / train::kRecipeFile)) {
    throw_user_error("folder '{}' holds no run; name one that 'snug train' made", folder.string());
  }
  const nlohmann::ordered_json json = json_of_run(folder);
  const std::filesystem::path to = flags.html ? std::filesystem::path(*flags.html) : folder / "report.html";
  if (flags.html || !flags.json) io::write_text_file(to, report::page(json));
  if (flags.json) return write_json(json);
  write_out(fmt::format("{}: the memory and the training of {}; open it in a browser\n", to.string(), folder.string()));
}

}  // namespace snug::cli
