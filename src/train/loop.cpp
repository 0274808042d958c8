#include "train/loop.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/process_memory.h"
#include "data/stream.h"
#include "train/overheads.h"
#include "train/peak_measurement.h"

namespace snug::train {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The median time per example of the last steps: one evaluation, one busy moment of the machine or one short batch at the end of
// an epoch does not change it.
class StepClock {
 public:
  void add(double seconds, std::size_t examples) {
    times_[added_ % kKept] = seconds / static_cast<double>(examples);
    ++added_;
  }
  double seconds_per_example() const {
    const std::size_t count = std::min(added_, kKept);
    if (count == 0) return 0;
    std::array<double, kKept> sorted = times_;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count / 2),
                     sorted.begin() + static_cast<std::ptrdiff_t>(count));
    return sorted[count / 2];
  }

 private:
  static constexpr std::size_t kKept = 51;
  std::array<double, kKept> times_{};
  std::size_t added_ = 0;
};

Examples to_examples(const data::Batch& batch) { return {.inputs = batch.inputs, .count = batch.examples}; }

bool is_due(std::uint64_t step, const std::optional<std::uint64_t>& every, bool epoch_ended) {
  return every ? *every > 0 && step % *every == 0 : epoch_ended;
}

std::string describe(double not_finite) { return std::isnan(not_finite) ? "not a number" : "infinite"; }

// A mark in a snapshot: its step's evaluation was interrupted and comes first when the run resumes.
constexpr const char* kEvaluationDue = "evaluation_due";

class Loop {
 public:
  Loop(Session& session, const data::Dataset& dataset, const LoopSettings& settings, Progress progress, RunFolder& folder,
       LoopListener& listener, const std::atomic<bool>& stop)
      : session_(session),
        dataset_(dataset),
        settings_(settings),
        progress_(std::move(progress)),
        folder_(folder),
        listener_(listener),
        stop_(stop),
        measurement_(session) {}

  LoopResult run();

 private:
  void step(const data::Batch& batch);
  void rewire();
  void evaluate();
  void save();
  [[noreturn]] void refuse(const std::string& what, const std::string& what_became_of_it) const;
  [[noreturn]] void stop_for_data(const UserError& error);
  double units_per_second() const;
  std::optional<Bytes> measured_peak() const;

  Session& session_;
  const data::Dataset& dataset_;
  const LoopSettings& settings_;
  Progress progress_;
  RunFolder& folder_;
  LoopListener& listener_;
  const std::atomic<bool>& stop_;
  PeakMeasurement measurement_;
  StepClock clock_;
  LoopResult result_;
  std::optional<std::uint64_t> saved_step_;  // of the newest snapshot, made by this process or found at the start
  bool made_a_step_ = false;
};

LoopResult Loop::run() {
  if (session_.step() > 0) {
    saved_step_ = session_.step();
    result_.last_snapshot = snapshot_path(folder_.path(), session_.step());
  }
  progress_.extras.erase(kUnreadableExample);
  data::Stream stream(dataset_, data::Split::train, session_.plan().program.batch,
                      {.seed = session_.counters().seed,
                       .shuffle = true,
                       .epoch = progress_.epoch,
                       .position = progress_.position,
                       .repeat = true});
  if (progress_.extras.erase(kEvaluationDue) > 0) {
    evaluate();
    // The snapshot must no longer ask for an evaluation that is done, even if this process makes no further step.
    if (!progress_.extras.contains(kEvaluationDue)) save();
  }
  while (session_.step() < settings_.total_steps && !stop_) {
    std::optional<data::Batch> batch;
    try {
      batch = stream.next();
    } catch (const UserError& error) {
      stop_for_data(error);
    }
    SNUG_CHECK(batch.has_value(), "a stream that repeats has ended");
    step(*batch);
    const bool epoch_ended = progress_.position == 0;
    const bool last = session_.step() == settings_.total_steps;
    if (last || is_due(session_.step(), settings_.eval_every, epoch_ended)) evaluate();
    // The best weights are only available later if they are saved now.
    const bool best_now = progress_.best_metric && progress_.best_step == session_.step();
    if (!stop_ && (last || best_now || is_due(session_.step(), settings_.snapshot_every, epoch_ended))) save();
  }
  if (saved_step_ != session_.step()) save();
  result_.steps = session_.step();
  result_.interrupted = session_.step() < settings_.total_steps || progress_.extras.contains(kEvaluationDue);
  result_.units_per_second = units_per_second();
  result_.last_evaluation = progress_.last_evaluation;
  result_.best_metric = progress_.best_metric;
  result_.measured_peak_bytes = measured_peak();
  if (made_a_step_ && session_.plan().host.planned_peak_bytes > Bytes(0))
    result_.measured_host_bytes = session_.executor().measured_peak_bytes(MemorySpace::host);
  if (session_.follows_gradients()) result_.loss_scale = session_.loss_scale();
  return result_;
}

void Loop::step(const data::Batch& batch) {
  const double rate = learning_rate(settings_.schedule, session_.step());
  session_.set_learning_rate(rate);
  const auto start = Clock::now();
  const bool measured = measurement_.running();
  const Result done = session_.train_step(to_examples(batch));
  if (!measured) clock_.add(seconds_since(start), batch.examples);
  made_a_step_ = true;
  constexpr const char* kNotMade = "whose update was not made";
  if (!std::isfinite(done.loss) && !done.overflowed) refuse(fmt::format("the loss became {}", describe(done.loss)), kNotMade);
  if (session_.clips() && !done.overflowed && !std::isfinite(session_.gradient_norm())) {
    refuse(fmt::format("the gradients' norm became {}", describe(session_.gradient_norm())), kNotMade);
  }
  measurement_.after_step(to_examples(batch));

  const auto examples = static_cast<std::uint64_t>(dataset_.description().train_examples);
  progress_.epoch = batch.epoch;
  progress_.position = batch.position + batch.examples;
  if (progress_.position >= examples) {
    ++progress_.epoch;
    progress_.position = 0;
  }
  const double batch_seconds = clock_.seconds_per_example() * static_cast<double>(batch.examples);
  const StepReport report{
      .step = session_.step(),
      .total_steps = settings_.total_steps,
      .epoch = static_cast<double>(progress_.epoch) + static_cast<double>(progress_.position) / static_cast<double>(examples),
      .loss = done.loss,
      .score = done.mean_score(),
      .learning_rate = rate,
      .units_per_second = units_per_second(),
      .seconds_left = batch_seconds * static_cast<double>(settings_.total_steps - session_.step())};
  if (std::isfinite(done.loss)) result_.train_loss = done.loss;
  MetricsLine line{.step = report.step,
                   .epoch = report.epoch,
                   .loss = report.loss,
                   .score = report.score,
                   .learning_rate = report.learning_rate,
                   .resident_bytes = process_memory().resident.count()};
  if (report.units_per_second > 0) line.units_per_second = report.units_per_second;
  if (session_.follows_gradients()) {
    line.loss_scale = session_.loss_scale().scale;
    line.skipped_steps = session_.loss_scale().skipped_steps;
  }
  folder_.add_metrics(line, session_.loss());
  listener_.on_step(report);
  if (rewires_after(settings_.rewiring, session_.step())) rewire();
}

void Loop::rewire() {
  session_.run_periodic();
  const SparseReport report = describe_sparse(session_);
  const auto examples = static_cast<double>(dataset_.description().train_examples);
  folder_.add_metrics({.step = session_.step(),
                       .epoch = static_cast<double>(progress_.epoch) + static_cast<double>(progress_.position) / examples,
                       .pruned = report.pruned,
                       .threshold = report.threshold,
                       .nonzeros = report.nonzeros},
                      session_.loss());
}

void Loop::refuse(const std::string& what, const std::string& what_became_of_it) const {
  throw_user_error(
      "{} in step {}, {}; {}; try a smaller --learning-rate, a warm-up or --clip-norm", what, session_.step(), what_became_of_it,
      saved_step_ ? fmt::format("the last good snapshot is {} of step {}", result_.last_snapshot.string(), *saved_step_)
                  : "no snapshot had been made");
}

// What was trained until then is worth keeping, and the run can resume once the data is repaired.
void Loop::stop_for_data(const UserError& error) {
  const auto* unreadable = dynamic_cast<const data::UnreadableExample*>(&error);
  if (unreadable != nullptr) progress_.extras[kUnreadableExample] = fmt::format("{:x}", unreadable->fingerprint());
  const bool has_snapshot = session_.step() > 0;
  if (has_snapshot) save();
  throw_user_error("{}; {}; {}, then go on with: snug train --out {} --resume{}", error.what(),
                   has_snapshot ? fmt::format("the run is saved after step {}", session_.step()) : "no step had been made",
                   unreadable != nullptr ? "repair or remove that file" : "repair the data", folder_.path().string(),
                   unreadable != nullptr ? "; or leave it as it is, and add --skip-bad-images" : "");
}

double Loop::units_per_second() const {
  const double seconds = clock_.seconds_per_example();
  return seconds > 0 ? throughput_of(session_.plan().program).rate(1 / seconds) : 0;
}

std::optional<Bytes> Loop::measured_peak() const {
  if (!made_a_step_) return progress_.measured_peak_bytes;
  return std::max(progress_.measured_peak_bytes.value_or(Bytes(0)), session_.executor().measured_peak_bytes());
}

void Loop::evaluate() {
  Result done;
  try {
    done = evaluate_split(session_, dataset_, data::Split::test, stop_);
  } catch (const UserError& error) {
    progress_.extras[kEvaluationDue] = "yes";
    stop_for_data(error);
  }
  if (done.examples < dataset_.description().test_examples) {
    // Told to stop. A partial evaluation is not a result, and an interrupted run must give the same results as an uninterrupted
    // one.
    progress_.extras[kEvaluationDue] = "yes";
    return;
  }
  // Such weights are useless: they are not saved, least of all as the best.
  if (!std::isfinite(done.loss)) refuse(fmt::format("the test loss became {}", describe(done.loss)), "which is not saved");
  const LossFacts& facts = *session_.loss().facts;
  const double metric = done.ranking_metric(facts);
  const bool best = !progress_.best_metric || is_better(facts, metric, *progress_.best_metric);
  if (best) {
    progress_.best_metric = metric;
    progress_.best_step = session_.step();
  }
  const Evaluation evaluation{.step = session_.step(), .loss = done.loss, .score = done.mean_score()};
  progress_.last_evaluation = evaluation;
  const auto examples = static_cast<double>(dataset_.description().train_examples);
  const Overheads overheads = measure_overheads(session_);
  MetricsLine line{.step = evaluation.step,
                   .epoch = static_cast<double>(progress_.epoch) + static_cast<double>(progress_.position) / examples,
                   .process_overhead_bytes = overheads.process_overhead_bytes.count(),
                   .test_loss = evaluation.loss,
                   .test_score = evaluation.score};
  if (const auto peak = measured_peak()) line.measured_peak_bytes = peak->count();
  if (overheads.device) line.device_overhead_bytes = overheads.device->bytes.count();
  folder_.add_metrics(line, session_.loss());
  listener_.on_evaluation(evaluation, best);
}

void Loop::save() {
  progress_.measured_peak_bytes = measured_peak();
  try {
    result_.last_snapshot = folder_.save_snapshot(session_, progress_, settings_.keep);
  } catch (const NotFinite& error) {
    refuse(error.what(), "which is not saved");
  }
  saved_step_ = session_.step();
  listener_.on_snapshot(session_.step(), result_.last_snapshot);
}

}  // namespace

std::uint64_t steps_per_epoch(const data::Description& data, std::int64_t batch) {
  return static_cast<std::uint64_t>((data.train_examples + batch - 1) / batch);
}

LoopResult run_loop(Session& session, const data::Dataset& dataset, const LoopSettings& settings, Progress progress,
                    RunFolder& folder, LoopListener& listener, const std::atomic<bool>& stop) {
  return Loop(session, dataset, settings, std::move(progress), folder, listener, stop).run();
}

Result evaluate_split(Session& session, const data::Dataset& dataset, data::Split split, const std::atomic<bool>& stop,
                      const std::function<void(const data::Batch&)>& after_batch) {
  data::Stream stream(dataset, split, session.plan().program.microbatch, {});
  Result total;
  while (!stop) {
    const std::optional<data::Batch> batch = stream.next();
    if (!batch) break;
    const Result part = session.evaluate(to_examples(*batch));
    if (after_batch) after_batch(*batch);
    total.loss += part.loss * part.weight;
    total.score += part.score;
    total.weight += part.weight;
    total.examples += part.examples;
  }
  if (total.weight > 0) total.loss /= total.weight;
  return total;
}

}  // namespace snug::train
