// The run that a command is given: its weights, and what they were trained on.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/evaluation.h"
#include "cli/flags.h"
#include "data/dataset.h"
#include "settings/recipe.h"
#include "train/snapshot.h"

namespace snug::cli {

// The last whole snapshot of the run that the flags name, or that of its best evaluation. UserError when there is none; damaged
// ones that were passed over are said.
train::SnapshotInfo find_snapshot(const Flags& flags);

// What the flags say of the recipe of a run whose model reads this kind of data. UserError when that goes with another kind.
void take_for_run(const Flags& flags, data::Kind reads, settings::Recipe& recipe);

struct TrainedRun {
  train::SnapshotInfo snapshot;
  // The snapshot's, of just the model that was trained, with the flags that were given.
  settings::Recipe recipe;
  data::Description trained;  // images are normalized as those were that the weights were trained on
  WeightsSource weights;      // the snapshot's, or those of --weights
};
TrainedRun open_run(const Flags& flags);

// Whose weights a result is of: "small-cnn after step 600", "small-cnn with average.safetensors".
std::string describe_weights(const TrainedRun& run);
// The beginning of an object about them: {"model": "small-cnn", "run": "runs/small-cnn", "step": 600}, or "weights" instead of
// the step.
nlohmann::ordered_json json_of(const TrainedRun& run, const std::string& folder);

}  // namespace snug::cli
