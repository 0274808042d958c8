#include "api/process_budget.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/child_process.h"
#include "base/error.h"
#include "base/touched_pages.h"
#include "train/overheads.h"

namespace snug {

namespace {

// What is assumed until it has been measured: resident memory on a CPU, the driver's on a GPU.
constexpr Bytes kFirstGuess(24'000'000);
constexpr Bytes kFirstGuessOnGpu(320'000'000);
constexpr std::uint64_t kTrialSteps = 3;
constexpr int kMostTrials = 4;

struct Trial {
  Bytes arena;
  Bytes beside;
  Bytes process() const { return arena + beside; }
};

// Stops a run after its first steps: what they take, the others take.
class FewSteps : public train::LoopListener {
 public:
  void on_step(const train::StepReport& report) override { stop_ = report.step >= kTrialSteps; }
  void on_evaluation(const train::Evaluation& /*evaluation*/, bool /*best_so_far*/) override {}
  void on_snapshot(std::uint64_t /*step*/, const std::filesystem::path& /*path*/) override {}
  const std::atomic<bool>& stop() const { return stop_; }

 private:
  std::atomic<bool> stop_ = false;
};

class TrialFolder {
 public:
  TrialFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "snug_trial_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw_user_error("no folder can be made in '{}' for a trial: {}", std::filesystem::temp_directory_path().string(),
                       std::generic_category().message(errno));
    path_ = name;
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  ~TrialFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path run() const { return path_ / "run"; }

 private:
  std::filesystem::path path_;
};

// The run that the recipe asks for with this budget, as far as its first steps and a snapshot.
Trial try_budget(settings::Recipe recipe, Bytes budget, const RunSettings& settings) {
  recipe.budget_bytes = std::max(budget, Bytes(1));
  recipe.process_budget.reset();
  const TrialFolder folder;
  const TouchedPages before = TouchedPages::now();
  const std::string said = run_in_child([&] {
    FewSteps few;
    TrainingRun run = TrainingRun::begin(recipe, {}, {.folder = folder.run(), .costs = settings.costs});
    run.train(few, few.stop());
    const train::Overheads overheads = train::measure_overheads(run.session());
    const Bytes beside = overheads.device ? overheads.device->bytes
                                          : overheads.process_overhead_bytes + run.plan().host.planned_peak_bytes +
                                                before.not_in(TouchedPages::now());
    return nlohmann::json{run.plan().planned_peak_bytes.count(), beside.count()}.dump();
  });
  const auto json = nlohmann::json::parse(said);
  return {.arena = Bytes(json.at(0).get<std::int64_t>()), .beside = Bytes(json.at(1).get<std::int64_t>())};
}

// What differs from run to run: a few pages of the heap, which code was touched.
Bytes with_margin(Bytes beside) { return beside + Bytes(beside.count() / 50) + Bytes(256 << 10); }

[[noreturn]] void refuse(const settings::Recipe& recipe, Bytes smallest_arena, Bytes beside) {
  const Bytes asked = *recipe.process_budget;
  const Bytes least = smallest_arena + with_margin(beside);
  throw DoesNotFit(
      fmt::format("{} at batch {} does not fit a process of {} bytes: it takes {} beside its arena, which takes {} at the least; "
                  "give {} bytes ({})",
                  recipe.model, recipe.batch, asked.count(), format_bytes(beside), format_bytes(smallest_arena), least.count(),
                  format_bytes(least)),
      least.count());
}

// A forked process has its parent's memory and none of its threads, for which libraries would wait.
bool has_threads() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  return std::distance(begin(tasks), end(tasks)) > 1;
}

}  // namespace

Bytes arena_budget(const settings::Recipe& recipe, const RunSettings& settings) {
  if (has_threads()) {
    throw UserError(
        "a process budget is measured in a forked process, and this one has threads already; begin the run before it does");
  }
  const Bytes all = *recipe.process_budget;
  Bytes beside = recipe.device == "cuda" ? kFirstGuessOnGpu : kFirstGuess;
  std::optional<Bytes> works;
  for (int trial = 0; trial < kMostTrials; ++trial) {
    const Bytes budget = all - beside;
    if (works && budget <= *works) break;
    try {
      const Trial tried = try_budget(recipe, budget, settings);
      if (tried.process() <= all && budget > Bytes(0)) works = budget;
      beside =
          works == budget ? with_margin(tried.beside) : std::max(with_margin(tried.beside), beside + Bytes(beside.count() / 50));
    } catch (const DoesNotFit& refusal) {
      if (works) break;
      const Bytes smallest(refusal.smallest_budget_bytes());
      if (smallest == Bytes(0)) throw;
      const Trial tried = try_budget(recipe, smallest, settings);
      if (tried.arena + with_margin(tried.beside) > all) refuse(recipe, tried.arena, tried.beside);
      works = smallest;
      beside = with_margin(tried.beside);  // the guess was too large
    }
  }
  if (!works) throw_user_error("what the process takes beside its arena differs too much from trial to trial; use --budget");
  settings.say(fmt::format("{} of the {} for the process are left to the arena; what training takes beside it was measured",
                           format_bytes(*works), format_bytes(all)));
  return *works;
}

}  // namespace snug
