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

// The median time of the last steps: one evaluation, one busy moment of the machine does not move it.
class StepClock {
 public:
  void add(double seconds) {
    times_[added_ % kKept] = seconds;
    ++added_;
  }
  double median() const {
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

Examples to_examples(const data::Batch& batch) { return {.inputs = batch.inputs, .labels = batch.labels}; }

bool is_due(std::uint64_t step, const std::optional<std::uint64_t>& every, bool epoch_ended) {
  return every ? *every > 0 && step % *every == 0 : epoch_ended;
}

// A mark in a snapshot: its step's evaluation was cut short and comes first when the run goes on.
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
  [[noreturn]] void refuse(const std::string& what) const;

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
  std::optional<std::uint64_t> saved_step_;  // of the newest snapshot, made now or found at the start
};

LoopResult Loop::run() {
  if (session_.step() > 0) {
    saved_step_ = session_.step();
    result_.last_snapshot = snapshot_path(folder_.path(), session_.step());
  }
  data::Stream stream(dataset_, data::Split::train, session_.plan().program.batch,
                      {.seed = session_.counters().seed,
                       .shuffle = true,
                       .epoch = progress_.epoch,
                       .position = progress_.position,
                       .repeat = true});
  if (progress_.extras.erase(kEvaluationDue) > 0) {
    evaluate();
    // The snapshot must no longer ask for what is done, even if this process makes no further step.
    if (!progress_.extras.contains(kEvaluationDue)) save();
  }
  while (session_.step() < settings_.total_steps && !stop_) {
    const std::optional<data::Batch> batch = stream.next();
    SNUG_CHECK(batch.has_value(), "a stream that repeats has ended");
    step(*batch);
    const bool epoch_ended = progress_.position == 0;
    const bool last = session_.step() == settings_.total_steps;
    if (last || is_due(session_.step(), settings_.eval_every, epoch_ended)) evaluate();
    // The best weights can only be had later if they are saved now.
    const bool best_now = progress_.best_metric && progress_.best_step == session_.step();
    if (!stop_ && (last || best_now || is_due(session_.step(), settings_.snapshot_every, epoch_ended))) save();
  }
  if (saved_step_ != session_.step()) save();
  result_.steps = session_.step();
  result_.interrupted = session_.step() < settings_.total_steps || progress_.extras.contains(kEvaluationDue);
  const double seconds = clock_.median();
  result_.images_per_second = seconds > 0 ? static_cast<double>(session_.plan().program.batch) / seconds : 0;
  result_.last_evaluation = progress_.last_evaluation;
  result_.best_accuracy = progress_.best_metric;
  result_.measured_peak_bytes = session_.executor().measured_peak_bytes();
  if (session_.follows_gradients()) result_.loss_scale = session_.loss_scale();
  return result_;
}

void Loop::step(const data::Batch& batch) {
  const double rate = learning_rate(settings_.schedule, session_.step());
  session_.set_learning_rate(rate);
  const auto start = Clock::now();
  const bool measured = measurement_.running();
  const Result done = session_.train_step(to_examples(batch));
  if (!measured) clock_.add(seconds_since(start));
  if (!std::isfinite(done.loss) && !done.overflowed) refuse(fmt::format("the loss became {}", done.loss));
  if (session_.clips() && !done.overflowed && !std::isfinite(session_.gradient_norm())) {
    refuse(fmt::format("the gradients' norm became {}", session_.gradient_norm()));
  }
  measurement_.after_step(to_examples(batch));

  const auto examples = static_cast<std::uint64_t>(dataset_.description().train_examples);
  progress_.epoch = batch.epoch;
  progress_.position = batch.position + batch.labels.size();
  if (progress_.position >= examples) {
    ++progress_.epoch;
    progress_.position = 0;
  }
  const double seconds = clock_.median();
  const StepReport report{
      .step = session_.step(),
      .total_steps = settings_.total_steps,
      .epoch = static_cast<double>(progress_.epoch) + static_cast<double>(progress_.position) / static_cast<double>(examples),
      .loss = done.loss,
      .accuracy = static_cast<double>(done.correct) / static_cast<double>(done.examples),
      .learning_rate = rate,
      .images_per_second = seconds > 0 ? static_cast<double>(session_.plan().program.batch) / seconds : 0,
      .seconds_left = seconds * static_cast<double>(settings_.total_steps - session_.step())};
  if (std::isfinite(done.loss)) result_.train_loss = done.loss;
  MetricsLine line{.step = report.step,
                   .epoch = report.epoch,
                   .loss = report.loss,
                   .accuracy = report.accuracy,
                   .learning_rate = report.learning_rate,
                   .resident_bytes = process_memory().resident.count()};
  if (report.images_per_second > 0) line.images_per_second = report.images_per_second;
  if (session_.follows_gradients()) {
    line.loss_scale = session_.loss_scale().scale;
    line.skipped_steps = session_.loss_scale().skipped_steps;
  }
  folder_.add_metrics(line);
  listener_.on_step(report);
  if (rewires_after(settings_.rewiring, session_.step())) rewire();
}

void Loop::rewire() {
  session_.rewire();
  const SparseReport report = describe_sparse(session_);
  const auto examples = static_cast<double>(dataset_.description().train_examples);
  folder_.add_metrics({.step = session_.step(),
                       .epoch = static_cast<double>(progress_.epoch) + static_cast<double>(progress_.position) / examples,
                       .pruned = report.pruned,
                       .threshold = report.threshold,
                       .nonzeros = report.nonzeros});
}

void Loop::refuse(const std::string& what) const {
  throw_user_error("{} in step {}, whose update was not made; {}; try a smaller --learning-rate, a warm-up or --clip-norm", what,
                   session_.step(),
                   saved_step_
                       ? fmt::format("the last good snapshot is {} of step {}", result_.last_snapshot.string(), *saved_step_)
                       : "no snapshot had been made");
}

void Loop::evaluate() {
  const Result done = evaluate_split(session_, dataset_, data::Split::test, stop_);
  if (done.examples < dataset_.description().test_examples) {
    // Told to stop. A part is not a result, and a run in two parts must come to what one in one part does.
    progress_.extras[kEvaluationDue] = "yes";
    return;
  }
  const double accuracy = static_cast<double>(done.correct) / static_cast<double>(done.examples);
  const bool best = !progress_.best_metric || accuracy > *progress_.best_metric;
  if (best) {
    progress_.best_metric = accuracy;
    progress_.best_step = session_.step();
  }
  const Evaluation evaluation{.step = session_.step(), .loss = done.loss, .accuracy = accuracy};
  progress_.last_evaluation = evaluation;
  const auto examples = static_cast<double>(dataset_.description().train_examples);
  const Overheads overheads = measure_overheads(session_);
  folder_.add_metrics({.step = evaluation.step,
                       .epoch = static_cast<double>(progress_.epoch) + static_cast<double>(progress_.position) / examples,
                       .measured_peak_bytes = session_.executor().measured_peak_bytes().count(),
                       .process_overhead_bytes = overheads.process_overhead_bytes.count(),
                       .device_overhead_bytes = overheads.device ? std::optional(overheads.device->bytes.count()) : std::nullopt,
                       .test_loss = evaluation.loss,
                       .test_accuracy = evaluation.accuracy});
  listener_.on_evaluation(evaluation, best);
}

void Loop::save() {
  result_.last_snapshot = folder_.save_snapshot(session_, progress_, settings_.keep);
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

Result evaluate_split(Session& session, const data::Dataset& dataset, data::Split split, const std::atomic<bool>& stop) {
  data::Stream stream(dataset, split, session.plan().program.microbatch, {});
  Result total;
  while (!stop) {
    const std::optional<data::Batch> batch = stream.next();
    if (!batch) break;
    const Result part = session.evaluate(to_examples(*batch));
    total.loss += part.loss * static_cast<double>(part.examples);
    total.correct += part.correct;
    total.examples += part.examples;
  }
  if (total.examples > 0) total.loss /= static_cast<double>(total.examples);
  return total;
}

}  // namespace snug::train
