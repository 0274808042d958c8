// A recipe made ready to run: its data opened, its backend, its model planned inside the budget, its loop's settings.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "ir/kernel.h"
#include "plan/fit.h"
#include "settings/recipe.h"
#include "train/loop.h"

namespace snug {

// Image folders come in the size that the recipe or else the model asks for.
std::unique_ptr<data::Dataset> open_data(const settings::Recipe& recipe);

// UserError when the recipe, as it was told, says something that is for models that read other data than its own.
void check_model_reads(const settings::Recipe& recipe, settings::SaidBy said_by);

// Random images of the model's own shape, or of the size that the recipe asks for: what a plan is made for when no data is named.
data::Description random_description(const settings::Recipe& recipe);

// UserError when the device is not there, or does not store the recipe's precision.
Backend open_backend(const settings::Recipe& recipe);

// What a recipe says of any model: which parameters are frozen, whether labels are smoothed.
void finish_model(Program& model, const settings::Recipe& recipe);

using BuildModel = std::function<Program(std::int64_t microbatch)>;

// The optimizer of a model that is told none: adamw where the loss counts tokens, else sgd.
std::string_view suitable_optimizer(const Program& model);
// The recipe with everything about its optimizer told, for any model, which is made only where it decides.
settings::Recipe with_optimizer(settings::Recipe recipe, const BuildModel& model,
                                settings::SaidBy said_by = settings::SaidBy::recipe);
// For its own.
settings::Recipe with_optimizer(settings::Recipe recipe, settings::SaidBy said_by = settings::SaidBy::recipe);

// What a recipe asks of the planner, for any model.
FitRequest request_of(BuildModel model, const settings::Recipe& recipe, CostTable costs = {});
// For its own. UserError when model and data do not go together.
FitRequest fit_request(const settings::Recipe& recipe, const data::Description& data, CostTable costs = {});

// The same for a model that only evaluates: batch norm reads running statistics, whatever groups it was trained in.
settings::Recipe without_statistics_of_batches(settings::Recipe recipe);

// The model for this data, as fast as the budget lets it be. DoesNotFit when the budget is too small.
Fit fit_recipe(const settings::Recipe& recipe, const data::Description& data, const Backend& backend, CostTable costs = {});

// A sentence where the given strategy limits bytes that no plan can keep to: the plan then takes the least that was found.
std::vector<std::string> unkept_limits(const FitRequest& request, const Plan& plan);

// A plan that was saved in this file, for this recipe. UserError when it is one of another model, batch or backend, DoesNotFit
// when it is larger than the budget.
Plan adopt_plan(Plan plan, const std::filesystem::path& path, const settings::Recipe& recipe, const data::Description& data,
                const Backend& backend);

// What the whole batch at once takes, with nothing recomputed.
Bytes plain_peak(const settings::Recipe& recipe, const data::Description& data, const Backend& backend);

// How a plan was made; what a plan from a file of an earlier version does not say is taken from `otherwise`.
Methods methods_of(const Plan& plan, const Methods& otherwise);

train::LoopSettings loop_settings(const settings::Recipe& recipe, const data::Description& data);

// Tells a session what is data and no part of its plan: the loss scale, and what gradients are clipped to.
void configure(train::Session& session, const settings::Recipe& recipe);
// The loss scale of a plan in fp16, and after how many steps without overflow it grows.
void set_loss_scale(train::Session& session, std::uint64_t grow_after = train::LossScale::kGrowAfter);

}  // namespace snug
