// The training loop: batches in, steps, evaluations and snapshots out. It ends after the given number of steps, when it is told
// to stop, or with one sentence that says why it cannot continue; in every case, what was saved stays.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/stream.h"
#include "train/rewiring.h"
#include "train/run_folder.h"
#include "train/schedule.h"
#include "train/session.h"
#include "train/snapshot.h"

namespace snug::train {

struct LoopSettings {
  std::uint64_t total_steps = 0;
  Schedule schedule;
  RewiringSchedule rewiring;                    // of sparse weights
  std::optional<std::uint64_t> eval_every;      // steps; nothing: after every epoch
  std::optional<std::uint64_t> snapshot_every;  // steps; nothing: after every epoch
  std::size_t keep = 2;                         // newest snapshots kept in addition to the best
};

struct StepReport {
  std::uint64_t step = 0;  // counted from 1
  std::uint64_t total_steps = 0;
  double epoch = 0;  // epochs so far, with a fraction
  double loss = 0;
  double score = 0;  // the loss's second metric, where it has one
  double learning_rate = 0;
  double units_per_second = 0;  // of the last steps, without evaluations and snapshots
  double seconds_left = 0;
};

// Is told what happens, on the loop's own thread.
class LoopListener {
 public:
  virtual ~LoopListener() = default;
  virtual void on_step(const StepReport& report) = 0;
  virtual void on_evaluation(const Evaluation& evaluation, bool best_so_far) = 0;
  virtual void on_snapshot(std::uint64_t step, const std::filesystem::path& path) = 0;
};

struct LoopResult {
  std::uint64_t steps = 0;                    // the run's, not only this process's
  bool interrupted = false;                   // told to stop before its last step
  double units_per_second = 0;                // median over this process's steps, in the loss's unit; 0: it made none
  std::optional<double> train_loss;           // of this process's last step
  std::optional<Evaluation> last_evaluation;  // the run's
  std::optional<double> best_metric;          // of the metric that the loss ranks weights by
  std::filesystem::path last_snapshot;
  std::optional<Bytes> measured_host_bytes;  // this process's, if the plan keeps values there and it made a step
  std::optional<Bytes> measured_peak_bytes;  // the run's; nothing: it made no step, and no earlier process recorded it
  std::optional<LossScale> loss_scale;       // with dynamic loss scaling
};

// Steps of one epoch; the last batch may be smaller.
std::uint64_t steps_per_epoch(const data::Description& data, std::int64_t batch);

// Continues from `progress` and the session's state. `stop` may be set by a signal handler. UserError when the loss is not finite
// (the step's update is then not made) and a smaller loss scale would not help, when an evaluation or a weight is not finite
// (which is not saved), when the data turns out to be damaged (the run is saved first) or the folder cannot be written.
LoopResult run_loop(Session& session, const data::Dataset& dataset, const LoopSettings& settings, Progress progress,
                    RunFolder& folder, LoopListener& listener, const std::atomic<bool>& stop);

// In Progress::extras: the fingerprint of the example that could not be read, in hexadecimal. The run may resume without that
// example.
inline constexpr const char* kUnreadableExample = "unreadable_example";

// Mean metrics over a whole split, in its own order. Batches are of a microbatch at most, and each is shown once it has run.
Result evaluate_split(Session& session, const data::Dataset& dataset, data::Split split, const std::atomic<bool>& stop,
                      const std::function<void(const data::Batch&)>& after_batch = {});

}  // namespace snug::train
