// The installed snug::Run: a TrainingRun, in the installed API's own types.
#include "api/access.h"
#include "api/memory_summary.h"
#include "api/prepare.h"
#include "api/run.h"
#include "base/error.h"
#include <snug/run.h>

namespace snug {

namespace {

RunSettings settings_of(const RunOptions& options) {
  RunSettings settings{.folder = options.folder};
  if (!options.plan.empty()) settings.plan = options.plan;
  if (options.costs != "machine") settings.costs = options.costs;
  if (options.on_note) settings.say = options.on_note;
  return settings;
}

class Listener : public train::LoopListener {
 public:
  explicit Listener(const RunEvents& events) : events_(events) {}

  void on_step(const train::StepReport& report) override {
    if (!events_.on_step) return;
    events_.on_step({.step = report.step,
                     .total_steps = report.total_steps,
                     .epoch = report.epoch,
                     .loss = report.loss,
                     .score = report.score,
                     .learning_rate = report.learning_rate,
                     .units_per_second = report.units_per_second,
                     .seconds_left = report.seconds_left});
  }
  void on_evaluation(const train::Evaluation& evaluation, bool best_so_far) override {
    if (!events_.on_evaluation) return;
    events_.on_evaluation({.step = evaluation.step, .loss = evaluation.loss, .score = evaluation.score, .is_best = best_so_far});
  }
  void on_snapshot(std::uint64_t step, const std::filesystem::path& path) override {
    if (events_.on_snapshot) events_.on_snapshot(step, path.string());
  }

 private:
  const RunEvents& events_;
};

}  // namespace

struct Run::Impl {
  explicit Impl(TrainingRun begun) : run(std::move(begun)), memory(summarize(run.plan(), run.plain_peak_bytes())) {}

  TrainingRun run;
  MemorySummary memory;
  std::atomic<bool> stop = false;
};

Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Run::~Run() = default;
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;

Run Run::begin(const Recipe& recipe, const RunOptions& options) {
  const auto& told = Access::of(recipe);
  const settings::Recipe whole = told.whole();
  check_model_reads(whole, settings::SaidBy::recipe);
  return Run(std::make_unique<Impl>(TrainingRun::begin(whole, told.told, settings_of(options))));
}

Run Run::resume(const std::string& folder, const std::map<std::string, std::string>& changes, const RunOptions& options) {
  if (!options.folder.empty() || !options.plan.empty())
    throw UserError("a resumed run has its folder and its plan already; leave both out of the options");
  Recipe recipe("");  // names keys that are none, and values that are not possible
  for (const auto& [key, value] : changes) recipe.set(key, value);
  RunSettings settings = settings_of(options);
  settings.folder = folder;
  return Run(std::make_unique<Impl>(TrainingRun::resume(Access::of(recipe).told, settings)));
}

const MemorySummary& Run::memory() const { return impl_->memory; }
std::string Run::folder() const { return impl_->run.folder().path().string(); }
std::string Run::recipe_toml() const { return settings::print_recipe(impl_->run.recipe()); }
std::uint64_t Run::total_steps() const { return impl_->run.total_steps(); }
void Run::stop() noexcept { impl_->stop = true; }

RunResult Run::train(const RunEvents& events) {
  Listener listener(events);
  const train::LoopResult result = impl_->run.train(listener, impl_->stop);
  RunResult said{.steps = result.steps,
                 .interrupted = result.interrupted,
                 .units_per_second = result.units_per_second,
                 .train_loss = result.train_loss,
                 .best_test_score = result.best_metric,
                 .measured_peak_bytes = result.measured_peak_bytes.value_or(Bytes(0)).count(),
                 .last_snapshot = result.last_snapshot.string()};
  if (result.last_evaluation) {
    said.test_loss = result.last_evaluation->loss;
    said.test_score = result.last_evaluation->score;
  }
  return said;
}

}  // namespace snug
