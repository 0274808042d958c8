// What is done with a finished run: its accuracy, its weights.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include <fmt/ranges.h>

#include "api/evaluation.h"
#include "api/model_folder.h"
#include "api/prepare.h"
#include "api/trained_data.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "cli/trained_run.h"
#include "report/json.h"
#include "report/text.h"
#include "settings/knobs.h"
#include "train/average.h"
#include "train/data_record.h"
#include "train/overheads.h"
#include "train/run_folder.h"
#include "train/scores.h"
#include "train/snapshot.h"
#include "train/weights.h"

namespace snug::cli {

namespace {

// A session with the snapshot's weights. It is planned again: what was saved is in logical order and fits any plan. The budget
// was for training, and kernels of another machine may need more.
train::Session open_session(const train::SnapshotInfo& snapshot, settings::Recipe recipe, const data::Description& data) {
  recipe.budget_bytes.reset();
  const Backend backend = open_backend(recipe);
  train::Session session(fit_recipe(recipe, data, backend).plan, backend, recipe.seed, train::Start::from_file);
  train::load_snapshot(snapshot.path, session);
  return session;
}

// The data to test with: the run's own, wherever it is now, or another set with the same classes.
std::unique_ptr<data::Dataset> open_test_data(const Flags& flags, const settings::Recipe& recipe,
                                              const data::Description& trained) {
  std::unique_ptr<data::Dataset> dataset = open_data(recipe);
  const data::Description& now = dataset->description();
  if (now.kind == data::Kind::text) train::check_tokenizer(trained, now.text);
  if (const std::string difference = train::describe_class_difference(trained, now); !difference.empty()) {
    throw_user_error("the classes of '{}' are not those that the run was trained on: {}; give data with the same classes",
                     now.name, difference);
  }
  if (flags.has("data")) return dataset;
  const std::string difference = train::describe_difference(trained, now);
  if (trained.train_examples > 0 && !difference.empty())
    note(fmt::format("snug: the run's data has changed since it was trained: {}", difference));
  return dataset;
}

nlohmann::ordered_json per_class_json(std::span<const train::ClassTally> tallies, const data::Description& trained) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (std::size_t label = 0; label < tallies.size(); ++label) {
    const train::ClassTally& tally = tallies[label];
    nlohmann::ordered_json& each = classes.emplace_back();
    each["class"] = class_name(trained, static_cast<std::int64_t>(label));
    each["examples"] = tally.examples;
    each["accuracy"] = nullptr;  // what was not tested has none
    if (tally.examples > 0) each["accuracy"] = tally.accuracy();
  }
  return classes;
}

// A line for each class that was tested, the worst first, or for the ten worst of many.
std::string per_class_text(std::span<const train::ClassTally> tallies, const data::Description& trained) {
  constexpr std::size_t kMostLines = 10;
  std::vector<std::size_t> labels;
  for (std::size_t label = 0; label < tallies.size(); ++label) {
    if (tallies[label].examples > 0) labels.push_back(label);
  }
  std::ranges::stable_sort(labels, {}, [&](std::size_t label) { return tallies[label].accuracy(); });
  const std::size_t shown = std::min(labels.size(), kMostLines);
  std::string text = shown < labels.size()
                         ? fmt::format("the {} classes with the lowest accuracy, of {}:\n", shown, labels.size())
                         : std::string("each class, the lowest accuracy first:\n");
  for (const std::size_t label : std::span(labels).first(shown)) {
    const std::string name = class_name(trained, static_cast<std::int64_t>(label));
    text += fmt::format("  {:6.2f}% of {:>7}  {}\n", 100 * tallies[label].accuracy(),
                        report::format_count(tallies[label].examples), printable(name));
  }
  return text;
}

// Writes the weights of the snapshot, changed in a session, where --to says: a file or a folder. The model's name.
std::string export_to(const Flags& flags, const train::SnapshotInfo& snapshot,
                      const std::function<void(train::Session&)>& change) {
  settings::Recipe recipe = settings::parse_recipe(snapshot.progress.recipe, snapshot.path.string());
  recipe.device = "cpu";  // nothing is computed, and the run may come from a machine with a GPU
  const data::Description trained = trained_on(snapshot, recipe);
  if (flags.has("tokenizer") && !names_folder(*flags.to)) {
    throw_user_error(
        "--tokenizer goes with a folder, which has the tokenizer beside the weights, and '{}' is a file; leave it out",
        *flags.to);
  }
  take_for_run(flags, trained.kind, recipe);
  train::Session session = open_session(snapshot, recipe, trained);
  change(session);
  if (names_folder(*flags.to)) {
    const std::string said = export_folder(*flags.to, session, recipe, trained);
    if (!said.empty()) note("snug: " + said);
  } else {
    train::export_weights(*flags.to, session, train::weights_metadata(trained));
  }
  return recipe.model;
}

// The last ones of a run, or those that are given, in that order.
std::vector<std::filesystem::path> snapshots_to_average(const Flags& flags) {
  std::vector<std::filesystem::path> paths(flags.files.begin(), flags.files.end());
  const auto folder = std::ranges::find_if(paths, [](const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  });
  if (folder == paths.end()) {
    if (flags.last) throw_user_error("--last counts the snapshots of a run, and '{}' is no folder; leave it out", flags.files[0]);
    return paths;
  }
  if (paths.size() > 1) {
    throw_user_error("'{}' is the folder of a run, and there is '{}' beside it; name one run, or snapshots alone",
                     folder->string(), (folder == paths.begin() ? paths[1] : paths[0]).string());
  }
  if (!flags.last) throw_user_error("'snug average {}' needs --last, the number of snapshots, as in --last 5", flags.files[0]);
  const std::int64_t last = settings::parse_count("--last", *flags.last, {.least = 1, .most = 1'000'000});
  return train::last_snapshots(paths.front(), static_cast<std::size_t>(last));
}

}  // namespace

void refuse_run_files(const Flags& flags) {
  for (const std::optional<std::string>* path : {&flags.to, &flags.save, &flags.html, &flags.torch_snapshot}) {
    if (*path && train::belongs_to_run(**path))
      throw_user_error("'{}' is a file that a run keeps in its folder and needs to go on; name another file", **path);
  }
}

void run_eval(const Flags& flags) {
  const TrainedRun run = open_run(flags);
  const settings::Recipe& recipe = run.recipe;
  const data::Description& trained = run.trained;
  const std::unique_ptr<data::Dataset> dataset = open_test_data(flags, recipe, trained);
  train::Session session = open_evaluation(run.weights, recipe, trained, microbatch_of(recipe));
  const StopSignal stop;
  std::optional<train::ClassTallies> tallies;  // of networks that tell each example's class
  if (trained.kind == data::Kind::images) tallies.emplace(session);
  const train::Result result =
      train::evaluate_split(session, *dataset, data::Split::test, stop.asked(), [&](const data::Batch& batch) {
        if (tallies) tallies->add(batch);
      });
  if (result.examples < dataset->description().test_examples)
    throw Interrupted(stop.signal(), "evaluation was interrupted; run it again");
  const LossFacts& loss = *session.loss().facts;
  if (flags.json) {
    nlohmann::ordered_json json = json_of(run, *flags.folder);
    json["data"] = recipe.data;
    json["test_examples"] = result.examples;
    json[fmt::format("test_{}", loss.metrics[0])] = result.loss;
    if (!loss.metrics[1].empty()) json[fmt::format("test_{}", loss.metrics[1])] = result.mean_score();
    if (tallies) json["per_class"] = per_class_json(tallies->classes(), trained);
    train::put_overheads(json, train::measure_overheads(session));
    return write_json(json);
  }
  const std::string tested =
      fmt::format("{} test {} of {}", report::format_count(std::llround(result.weight)), loss.unit, recipe.data);
  const std::string says =
      loss.metrics[1] == "accuracy"
          ? fmt::format("{:.2f}% of {} are correct, ", 100 * result.mean_score(), tested)
          : tested + ": " + (loss.metrics[1].empty() ? "" : describe_metric(loss, 1, result.mean_score(), "") + ", ");
  write_out(fmt::format("{}: {}{}\n", describe_weights(run), says, describe_metric(loss, 0, result.loss, "")) +
            (tallies ? per_class_text(tallies->classes(), trained) : ""));
}

void run_export(const Flags& flags) {
  const train::SnapshotInfo snapshot = find_snapshot(flags);
  if (!flags.to) throw_user_error("'snug export' needs --to, as in 'snug export {} --to weights.safetensors'", *flags.folder);
  const std::string model = export_to(flags, snapshot, [](train::Session& /*session*/) {});
  if (flags.json) {
    const nlohmann::ordered_json json{
        {"model", model}, {"run", *flags.folder}, {"step", snapshot.counters.step}, {"to", *flags.to}};
    return write_json(json);
  }
  write_out(fmt::format("{}: the weights of {} after step {}\n", *flags.to, model, snapshot.counters.step));
}

void run_average(const Flags& flags) {
  if (flags.files.empty()) {
    throw UserError(
        "'snug average' needs a run, as in 'snug average runs/gpt-small --last 5 --to average.safetensors' (see 'snug average "
        "--help')");
  }
  const std::vector<std::filesystem::path> snapshots = snapshots_to_average(flags);
  if (!flags.to) {
    throw_user_error("'snug average' needs --to, as in 'snug average {} --last 5 --to average.safetensors'", flags.files.front());
  }
  std::vector<std::uint64_t> steps;
  const std::string model = export_to(flags, train::inspect_snapshot(snapshots.back()),
                                      [&](train::Session& session) { steps = train::average_snapshots(snapshots, session); });
  if (flags.json) {
    std::vector<std::string> names;
    names.reserve(snapshots.size());
    for (const std::filesystem::path& path : snapshots) names.push_back(path.string());
    return write_json({{"model", model}, {"snapshots", names}, {"steps", steps}, {"to", *flags.to}});
  }
  write_out(fmt::format("{}: the mean of {} of {}, after {} {}\n", *flags.to, counted(steps.size(), "snapshot"), model,
                        steps.size() == 1 ? "step" : "steps", fmt::join(steps, ", ")));
}

}  // namespace snug::cli
