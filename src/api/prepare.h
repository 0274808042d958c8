// A recipe made ready to run: its data opened, its backend, its model planned inside the budget, its loop's settings.
#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "ir/kernel.h"
#include "plan/fit.h"
#include "settings/recipe.h"
#include "train/loop.h"

namespace snug {

// What activations, weights, gradients and momenta are stored in. UserError when there is no such precision.
DType stored_as(std::string_view precision);

// What a precision asks of the update. Rounded by chance: as asked for, else in bf16, whose eight bits would swallow small
// updates. In fp16 the loss scale follows the gradients. UserError when the rounding is none, or there is nothing to round.
ops::UpdateOptions update_for(std::string_view precision, const std::optional<std::string>& rounding);

// What a plan may be stored in where fp32 was not asked for and Exactness::precision is allowed.
std::string_view narrower_precision(std::string_view device);

// Image folders come in the size that the recipe or else the model asks for.
std::unique_ptr<data::Dataset> open_data(const settings::Recipe& recipe);

// Random images of the model's own shape, or of the size that the recipe asks for: what a plan is made for when no data is named.
data::Description random_description(const settings::Recipe& recipe);

// UserError when the device is not there, or does not store the recipe's precision.
Backend open_backend(const settings::Recipe& recipe);

// What a recipe asks of the planner. UserError when model and data do not go together.
FitRequest fit_request(const settings::Recipe& recipe, const data::Description& data, CostTable costs = {});

// The model for this data, as fast as the budget lets it be. DoesNotFit when the budget is too small.
Fit fit_recipe(const settings::Recipe& recipe, const data::Description& data, const Backend& backend, CostTable costs = {});

// Which form of its model a recipe asks for.
ModelForm form_of(const settings::Recipe& recipe);

// Has a plan say of which form of the model it is, and for which machine's kernels.
void sign(Plan& plan, const settings::Recipe& recipe, const Backend& backend);

// A plan that was saved in this file, for this recipe. UserError when it is one of another model, batch or backend, DoesNotFit
// when it is larger than the budget.
Plan adopt_plan(Plan plan, const std::filesystem::path& path, const settings::Recipe& recipe, const data::Description& data,
                const Backend& backend);

// What the whole batch at once takes, with nothing recomputed.
Bytes plain_peak(const settings::Recipe& recipe, const data::Description& data, const Backend& backend);

// The recipe with what the planner chose: it asks for the same plan without a search.
settings::Recipe with_choices(settings::Recipe recipe, const FrontierPoint& point);

// The recipe of a run whose plan comes from a file: it says what the plan does, whatever it said before. How backward was made to
// compute again the plan does not tell.
settings::Recipe as_planned(settings::Recipe recipe, const Plan& plan);

train::LoopSettings loop_settings(const settings::Recipe& recipe, const data::Description& data);

// Tells a session what is data and no part of its plan: the loss scale, and what gradients are clipped to.
void configure(train::Session& session, const settings::Recipe& recipe);
// The loss scale of a precision, and after how many steps without overflow it grows.
void set_loss_scale(train::Session& session, std::string_view precision, std::uint64_t grow_after = train::LossScale::kGrowAfter);

}  // namespace snug
