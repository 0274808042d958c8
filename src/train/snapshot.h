// Snapshots: everything a run needs to go on bit-exactly, in one file. A snapshot is a safetensors file whose metadata carries
// the counters, the recipe and the plan, and whose last tensor is a checksum over every byte before it. It is written under a
// temporary name and renamed, so a name always stands for a whole file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "io/safetensors.h"
#include "ir/kernel.h"
#include "plan/plan.h"
#include "train/session.h"

namespace snug::train {

inline constexpr int kSnapshotFormat = 1;

// What a run's test examples said.
struct Evaluation {
  std::uint64_t step = 0;  // it was made after
  double loss = 0;
  double score = 0;  // the loss's second metric, where it has one

  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

// Where a run stands, beside what the session knows itself.
struct Progress {
  std::uint64_t epoch = 0;            // whole epochs behind it
  std::uint64_t position = 0;         // examples of the current epoch behind it
  std::optional<double> best_metric;  // the best evaluation so far, and the step it was made after
  std::uint64_t best_step = 0;
  std::optional<Evaluation> last_evaluation;  // so that a run resumed at its end still knows its result
  std::optional<Bytes> measured_peak_bytes;   // ... and what it took, as far as its plan has been measured
  std::optional<data::Description> data;      // what it is trained on; nothing: of a version that did not keep it
  std::string recipe;                         // canonical TOML
  std::map<std::string, std::string> extras;  // what a loop wants back as it is; names without meaning here

  friend bool operator==(const Progress&, const Progress&) = default;
};

struct SnapshotInfo {
  std::filesystem::path path;
  int format = 0;
  std::string model;
  Session::Counters counters;
  Progress progress;
  std::string plan;  // the run's own, as plan_file.h has it
  std::vector<io::TensorInfo> tensors;
};

// Parameters, optimizer state and running statistics, in logical order and their own types, and all of the above. Takes no
// memory for tensors, only for pieces of them. UserError, with the old file intact, when it cannot be written, or when a state
// has an element that is not finite (NotFinite): nothing good comes of going on from there.
class NotFinite : public UserError {
 public:
  using UserError::UserError;
};
void save_snapshot(const std::filesystem::path& path, const Session& session, const Progress& progress);

// Verifies the whole file, then restores states and counters; of a program without updates, those that it has. On UserError about
// what is in it the session is as it was; only a disk that fails between the two readings leaves it half restored.
Progress load_snapshot(const std::filesystem::path& path, Session& session);

// Verifies the whole file and says what is in it.
SnapshotInfo inspect_snapshot(const std::filesystem::path& path);

// snapshots/step_000001200.safetensors
std::filesystem::path snapshot_path(const std::filesystem::path& run_folder, std::uint64_t step);

struct FoundSnapshot {
  std::optional<SnapshotInfo> snapshot;
  std::vector<std::string> warnings;  // one sentence for each damaged file that was passed over
};
// The newest whole snapshot of a run folder.
FoundSnapshot find_latest_good(const std::filesystem::path& run_folder);

// Removes all but the newest `keep` snapshots of a run folder and the one after `best_step`; at least the newest stays.
void prune_snapshots(const std::filesystem::path& run_folder, std::size_t keep, std::optional<std::uint64_t> best_step);

// Gives the snapshots after `step` names that nothing takes for a snapshot (*.damaged): a run that goes on from `step` passed
// over them, and as the newest they would keep its own from staying.
void set_later_snapshots_aside(const std::filesystem::path& run_folder, std::uint64_t step);

}  // namespace snug::train
