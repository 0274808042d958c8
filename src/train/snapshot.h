// Snapshots: everything a run needs to resume bit-exactly, in one file. A snapshot is a safetensors file whose metadata carries
// the counters, the recipe and the plan, and whose last tensor is a checksum over every byte before it. It is written under a
// temporary name and renamed, so the final name always means a complete file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "io/safetensors.h"
#include "ir/kernel.h"
#include "plan/plan.h"
#include "train/session.h"

namespace snug::train {

inline constexpr int kSnapshotFormat = 1;

// The result on a run's test examples.
struct Evaluation {
  std::uint64_t step = 0;  // after which it was made
  double loss = 0;
  double score = 0;  // the loss's second metric, where it has one

  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

// The progress of a run, beyond what the session has.
struct Progress {
  std::uint64_t epoch = 0;            // complete epochs so far
  std::uint64_t position = 0;         // examples of the current epoch so far
  std::optional<double> best_metric;  // the best evaluation so far, and the step after which it was made
  std::uint64_t best_step = 0;
  std::optional<Evaluation> last_evaluation;  // so that a run resumed at its end still knows its result
  std::optional<Bytes> measured_peak_bytes;   // ... and its memory, if its plan has been measured
  std::optional<data::Description> data;      // what it is trained on; nothing in files of versions that did not keep it
  std::string recipe;                         // canonical TOML
  std::map<std::string, std::string> extras;  // what a loop saves for itself; not interpreted here

  friend bool operator==(const Progress&, const Progress&) = default;
};

struct SnapshotInfo {
  std::filesystem::path path;
  int format = 0;
  std::string model;
  Session::Counters counters;
  Progress progress;
  std::string plan;  // the run's own, in the format of plan_file.h
  std::vector<io::TensorInfo> tensors;
};

// Saves parameters, optimizer state and running statistics, in logical order and their own types, and all of the above. Needs
// memory for pieces of tensors only. UserError, with the old file intact, when it cannot be written, or when a state has an
// element that is not finite (NotFinite): resuming from there would be useless.
class NotFinite : public UserError {
 public:
  using UserError::UserError;
};
void save_snapshot(const std::filesystem::path& path, const Session& session, const Progress& progress);

// Verifies the whole file, then restores states and counters; in a program without updates, those that it has. On a UserError
// about its contents the session is unchanged; only a disk that fails between the two reads leaves it half restored.
Progress load_snapshot(const std::filesystem::path& path, Session& session);

// Verifies the whole file and returns its description.
SnapshotInfo inspect_snapshot(const std::filesystem::path& path);

// Where the elements of these states begin in the file, each in logical order and its own type. UserError about the first that it
// does not have, or not so, and, unless others may be there, about one that is none of them.
enum class OtherStates : std::uint8_t { may_be_there, are_refused };
std::vector<std::uint64_t> find_states(const SnapshotInfo& snapshot, const Program& program, std::span<const StateId> states,
                                       OtherStates others);

// snapshots/step_000001200.safetensors
std::filesystem::path snapshot_path(const std::filesystem::path& run_folder, std::uint64_t step);

struct FoundSnapshot {
  std::optional<SnapshotInfo> snapshot;
  std::vector<std::string> warnings;  // one sentence for each damaged file that was skipped
};
// The newest undamaged snapshot of a run folder.
FoundSnapshot find_latest_good(const std::filesystem::path& run_folder);

// The newest `count` snapshots of a run folder, the oldest of them first; UserError when it has fewer, saying how more are kept.
std::vector<std::filesystem::path> last_snapshots(const std::filesystem::path& run_folder, std::size_t count);

// Removes all but the newest `keep` snapshots of a run folder and the one after `best_step`; at least the newest stays.
void prune_snapshots(const std::filesystem::path& run_folder, std::size_t keep, std::optional<std::uint64_t> best_step);

// Renames the snapshots after `step` to *.damaged: a run that resumes from `step` skipped them, and as the newest they would
// cause its own to be removed.
void set_later_snapshots_aside(const std::filesystem::path& run_folder, std::uint64_t step);

}  // namespace snug::train
