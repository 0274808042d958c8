// The folder of a run:
//
//   recipe.toml      what the run was told
//   plan.txt         the program and where every byte lies
//   data.json        what the data was: classes, counts, mean and deviation, a fingerprint of its files
//   metrics.jsonl    one JSON object per line
//   log.txt          what was said while it ran
//   snapshots/       step_000001200.safetensors, ...
//   lock             held while a process writes here
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file_io.h"
#include "ir/loss.h"
#include "plan/plan.h"
#include "settings/recipe.h"
#include "train/snapshot.h"

namespace snug::train {

inline constexpr const char* kRecipeFile = "recipe.toml";
inline constexpr const char* kPlanFile = "plan.txt";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kDataFile = "data.json";

// One line of metrics.jsonl. The loss names its metrics and the unit of throughput: "accuracy", "images_per_second".
struct MetricsLine {
  std::uint64_t step = 0;
  double epoch = 0;
  std::optional<double> loss;   // mean over the training examples since the last line
  std::optional<double> score;  // the loss's second metric; left out where it has none
  std::optional<double> learning_rate;
  std::optional<double> loss_scale;  // where gradients are scaled
  std::optional<double> units_per_second;
  std::optional<std::uint64_t> skipped_steps;       // so far, because of overflows
  std::optional<std::int64_t> resident_bytes;       // of the process now, as the operating system counts it
  std::optional<std::int64_t> measured_peak_bytes;  // of the arena
  // What training takes beside the arena: see overheads.h.
  std::optional<std::int64_t> process_overhead_bytes;
  std::optional<std::int64_t> device_overhead_bytes;
  std::optional<double> test_loss;
  std::optional<double> test_score;
  // Of a rewiring of sparse weights: how many were pruned and regrown, the next threshold, and the nonzeros per tensor.
  std::optional<std::int64_t> pruned;
  std::optional<double> threshold;
  std::vector<std::pair<std::string, std::int64_t>> nonzeros;
};

// Whether a path is a file that a run keeps in its folder: nothing else may write there.
bool belongs_to_run(const std::filesystem::path& path);

// A number that JSON does not have (NaN, infinity) is written as null.
std::string to_json(const MetricsLine& line, const ProgramLoss& loss);

class RunFolder {
 public:
  // A new run. UserError when the folder holds one already or another process writes to it.
  // The plan and the record of the data are written first: a folder that has a recipe can be resumed.
  static RunFolder create(const std::filesystem::path& path, const settings::Recipe& recipe, const Plan* plan = nullptr,
                          const data::Description* data = nullptr);
  // A run to resume. UserError when there is none or another process writes to it.
  static RunFolder resume(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  settings::Recipe recipe() const;  // as in recipe.toml

  std::filesystem::path plan_path() const;  // as plan_file.h has it
  // What the run's data was at its start; nothing for a run of a version that did not keep it.
  std::optional<data::Description> data() const;
  // What may change when a run resumes: where its data lies, its record, its plan.
  void replace(const settings::Recipe& recipe) { io::write_text_file(path_ / kRecipeFile, settings::print_recipe(recipe)); }
  void replace(const data::Description& data);
  void replace(const Plan& plan);
  // Before a run resumes from `step`: cuts the metrics to the lines up to it and sets later snapshots, which are damaged, aside
  // (*.damaged). Later steps will run again.
  void rewind(std::uint64_t step);
  void add_metrics(const MetricsLine& line, const ProgramLoss& loss);
  void log(std::string_view line);

  // Saves after the session's step, then removes what `keep` and the best no longer need.
  std::filesystem::path save_snapshot(const Session& session, const Progress& progress, std::size_t keep);
  FoundSnapshot find_latest_good() const { return train::find_latest_good(path_); }

 private:
  RunFolder(std::filesystem::path path, io::FileHandle lock);

  std::filesystem::path path_;
  io::FileHandle lock_;  // the kernel releases it when the process ends, however it ends
  io::AppendFile metrics_;
  io::AppendFile log_;
};

}  // namespace snug::train
