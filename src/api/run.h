// A training run: begun from a recipe or resumed from its folder, then trained to its end or until it is told to stop. The
// command and the installed snug::Run are this, and differ in what they say about it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/costs.h"
#include "data/dataset.h"
#include "report/plan_context.h"
#include "settings/told.h"
#include "train/loop.h"
#include "train/run_folder.h"

namespace snug {

// What a run is told beside its recipe.
struct RunSettings {
  // Where it is kept. To begin, empty: runs/MODEL, or the first of runs/MODEL-2, runs/MODEL-3, ... that is not there.
  std::filesystem::path folder;
  std::optional<std::filesystem::path> plan;            // a file of 'snug plan --save', to be run as it is
  std::optional<std::string> costs;                     // as in find_costs(); they are only read
  settings::SaidBy said_by = settings::SaidBy::recipe;  // whose words a refusal uses
  std::function<void(const std::string&)> say = [](const std::string& /*note*/) {};  // what a user should know, one sentence each
};

class TrainingRun {
 public:
  // `told`: what was said beside the recipe's file, and is already in the recipe; where a plan is given it must not say
  // otherwise. Only a run that can begin leaves a folder behind. UserError and DoesNotFit as opening data and planning give them.
  static TrainingRun begin(settings::Recipe recipe, const settings::Told& told, const RunSettings& settings);
  // `told`: what is to change; UserError about what cannot, and when data or recipe are not what the run was trained with. Goes
  // on to the same bits as if it had not been interrupted, unless another processor needs another plan, which it says.
  static TrainingRun resume(const settings::Told& told, const RunSettings& settings);

  // Until the last step, or soon after `stop` is set; either way the run is saved. UserError as run_loop() gives it.
  train::LoopResult train(train::LoopListener& listener, const std::atomic<bool>& stop);

  const settings::Recipe& recipe() const { return recipe_; }  // with what the solver chose, where there is a budget
  train::RunFolder& folder() { return folder_; }
  const train::RunFolder& folder() const { return folder_; }
  const data::Description& data() const { return dataset_->description(); }
  train::Session& session() const { return *session_; }
  const Plan& plan() const { return session_->plan(); }
  std::uint64_t total_steps() const { return settings_.total_steps; }
  // Of plain training, the whole batch at once; nothing where a microbatch was asked for.
  std::optional<Bytes> plain_peak_bytes() const { return plain_peak_bytes_; }
  const report::PlanContext& plan_context() const { return plan_context_; }  // for reports

 private:
  TrainingRun(settings::Recipe recipe, train::RunFolder folder) : recipe_(std::move(recipe)), folder_(std::move(folder)) {}
  void describe_plan(const Costs& costs, const Backend& backend, const RunSettings& settings);

  settings::Recipe recipe_;
  train::RunFolder folder_;
  std::unique_ptr<data::Dataset> dataset_;
  train::LoopSettings settings_;
  std::unique_ptr<train::Session> session_;
  train::Progress progress_;
  std::optional<Bytes> plain_peak_bytes_;
  report::PlanContext plan_context_;
};

}  // namespace snug
