#include "cli/trained_run.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "api/trained_data.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/output.h"
#include "settings/knobs.h"
#include "settings/told.h"

namespace snug::cli {

train::SnapshotInfo find_snapshot(const Flags& flags) {
  if (!flags.folder) {
    throw_user_error("'snug {0}' needs the folder of a run, as in 'snug {0} runs/{1}' (see 'snug {0} --help')", flags.command,
                     flags.command == "generate" ? "gpt-small" : "wrn-28-2");
  }
  const std::filesystem::path folder = *flags.folder;
  if (!std::filesystem::is_directory(folder))
    throw_user_error("there is no folder '{}'; name one that 'snug train' made", folder.string());
  train::FoundSnapshot found = train::find_latest_good(folder);
  for (const std::string& warning : found.warnings) note("snug: " + warning);
  if (!found.snapshot)
    throw_user_error("'{}' holds no whole snapshot; train it first, with 'snug train --out {}'", folder.string(),
                     folder.string());
  if (!flags.best) return std::move(*found.snapshot);
  if (!found.snapshot->progress.best_metric) {
    throw_user_error("the run in '{}' has not been tested yet, so it has no best weights; leave out --best", folder.string());
  }
  return train::inspect_snapshot(train::snapshot_path(folder, found.snapshot->progress.best_step));
}

void take_for_run(const Flags& flags, data::Kind reads, settings::Recipe& recipe) {
  for (const auto& [key, texts] : flags.knobs) {
    refuse_for_other_data(settings::knob(key), recipe, reads, settings::SaidBy::flags);
    take(settings::knob(key), texts, recipe);
  }
}

TrainedRun open_run(const Flags& flags) {
  if (flags.weights && flags.best) throw UserError("--weights and --best both say which weights; leave out one of them");
  train::SnapshotInfo snapshot = find_snapshot(flags);
  settings::Recipe recipe = settings::parse_recipe(snapshot.progress.recipe, snapshot.path.string());
  data::Description trained = trained_on(snapshot, recipe);
  if (trained.kind == data::Kind::text) {
    recipe.length = trained.text.length;
  } else {
    recipe.classes = recipe.classes.value_or(trained.classes);
    recipe.image_size = trained.height;
  }
  // The other methods are of training, and may be those of another device.
  const Methods& made = recipe.methods;
  recipe.methods = {.precision = made.precision,
                    .nonzero = made.nonzero,
                    .microbatch = made.microbatch,
                    .workspace_limit = made.workspace_limit};
  recipe.allow = settings::Recipe().allow;
  WeightsSource weights{.snapshot = snapshot.path, .exported = {}};
  if (flags.weights) {
    weights.exported = *flags.weights;
    recipe.methods.nonzero.reset();  // exported weights are dense
    recipe.sparse = {};
  }
  take_for_run(flags, trained.kind, recipe);
  settings::check_recipe(recipe, settings::SaidBy::flags);
  return {
      .snapshot = std::move(snapshot), .recipe = std::move(recipe), .trained = std::move(trained), .weights = std::move(weights)};
}

std::string describe_weights(const TrainedRun& run) {
  if (run.weights.exported) return fmt::format("{} with {}", run.recipe.model, printable(run.weights.exported->string(), 200));
  return fmt::format("{} after step {}", run.recipe.model, run.snapshot.counters.step);
}

nlohmann::ordered_json json_of(const TrainedRun& run, const std::string& folder) {
  nlohmann::ordered_json json{{"model", run.recipe.model}, {"run", folder}};
  if (run.weights.exported) {
    json["weights"] = run.weights.exported->string();
  } else {
    json["step"] = run.snapshot.counters.step;
  }
  return json;
}

}  // namespace snug::cli
