// What a run was trained on, from the run alone: its data may be elsewhere by now, or gone.
#pragma once

#include <string>

#include "data/dataset.h"
#include "plan/plan.h"
#include "settings/recipe.h"
#include "train/snapshot.h"

namespace snug {

// As much of the data as a run's plan shows: shape, number of classes, and how its images are normalized.
data::Description description_of(const settings::Recipe& recipe, const Plan& plan);

// The run's own record, or, for a run of a version that kept none, what its plan shows.
data::Description trained_on(const train::SnapshotInfo& snapshot, const settings::Recipe& recipe);

// The recipe with its paths spelled out, so that it means the same from any working folder.
settings::Recipe with_whole_paths(settings::Recipe recipe);

}  // namespace snug
