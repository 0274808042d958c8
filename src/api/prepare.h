// A recipe made ready to run: its data opened, its backend, its model planned inside the budget, its loop's settings.
#pragma once

#include <memory>

#include "data/dataset.h"
#include "ir/kernel.h"
#include "plan/fit.h"
#include "train/loop.h"
#include "train/recipe.h"

namespace snug {

// Image folders come in the size that the recipe or else the model asks for.
std::unique_ptr<data::Dataset> open_data(const train::Recipe& recipe);

// UserError when the device is not there.
Backend open_backend(const train::Recipe& recipe);

// What to plan: the model for this data. UserError when they do not go together.
FitRequest fit_request(const train::Recipe& recipe, const data::Description& data, CostTable costs = {});

// The model for this data, in the largest microbatches that fit the budget. UserError when model and data do not go together,
// DoesNotFit when the budget is too small.
Fit fit_recipe(const train::Recipe& recipe, const data::Description& data, const Backend& backend, CostTable costs = {});

train::LoopSettings loop_settings(const train::Recipe& recipe, const data::Description& data);

// Gradients of 16-bit training are computed this many times larger.
double initial_loss_scale(const train::Recipe& recipe);

}  // namespace snug
