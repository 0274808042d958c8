// A training run in a folder, as `snug train` makes it: on data that Snug reads, with schedules, tests, snapshots and metrics.
//
//   snug::Run run = snug::Run::begin(recipe, {.folder = "runs/cifar"});
//   snug::RunResult result = run.train();
//
// `snug eval`, `export`, `report` and `train --resume` work on the folder of either.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <snug/memory.h>
#include <snug/recipe.h>

namespace snug {

struct RunOptions {
  std::string folder = {};        // where it is kept; empty: runs/MODEL, or runs/MODEL-2 and so on where that exists
  std::string plan = {};          // a file of 'snug plan --save', to be run as it is; empty: a plan is made
  std::string costs = "machine";  // node times that plans are compared by: as TrainingOptions::costs
  std::function<void(const std::string&)> on_note = {};  // gets what a user should know, a sentence at a time
};

struct RunStep {
  std::uint64_t step = 0;  // counted from 1
  std::uint64_t total_steps = 0;
  double epoch = 0;  // how many the run has seen, with its fraction
  double loss = 0;
  double score = 0;  // what the loss counts beside itself: the accuracy
  double learning_rate = 0;
  double units_per_second = 0;  // images, tokens: the loss's unit
  double seconds_left = 0;
};

struct RunEvaluation {
  std::uint64_t step = 0;  // after which it was made
  double loss = 0;
  double score = 0;
  bool is_best = false;  // so far
};

// Calls come from the thread that trains.
struct RunEvents {
  std::function<void(const RunStep&)> on_step = {};
  std::function<void(const RunEvaluation&)> on_evaluation = {};
  std::function<void(std::uint64_t step, const std::string& path)> on_snapshot = {};
};

struct RunResult {
  std::uint64_t steps = 0;   // the run's, also those of earlier processes
  bool interrupted = false;  // stop() was called before the last step
  double units_per_second = 0;
  std::optional<double> train_loss = {};  // of the last step; nothing: this process made none
  std::optional<double> test_loss = {};   // of the run's last evaluation
  std::optional<double> test_score = {};
  std::optional<double> best_test_score = {};
  std::int64_t measured_peak_bytes = 0;  // of the arena; 0: not measured
  std::string last_snapshot = {};
};

class Run {
 public:
  // UserError and DoesNotFit as the command has them. With `process_budget` in the recipe: before the program starts threads.
  static Run begin(const Recipe& recipe, const RunOptions& options = {});
  // Goes on to the same bits as if it had not been interrupted. `changes`, by key: what may change when a run is resumed, such as
  // epochs, steps, learning rate and schedule.
  static Run resume(const std::string& folder, const std::map<std::string, std::string>& changes = {},
                    const RunOptions& options = {});
  ~Run();
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;

  const MemorySummary& memory() const;
  std::string folder() const;
  std::string recipe_toml() const;  // with what the solver chose for the budget
  std::uint64_t total_steps() const;

  // Until the last step, or until the step in which stop() is called is done; either way the run is saved. Once.
  RunResult train(const RunEvents& events = {});
  // From any thread, an event or a signal handler.
  void stop() noexcept;

 private:
  struct Impl;
  explicit Run(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace snug
