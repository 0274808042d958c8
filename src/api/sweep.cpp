#include "api/sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "api/costs.h"
#include "api/prepare.h"
#include "api/sweep_plans.h"
#include "base/child_process.h"
#include "base/error.h"
#include "base/median.h"
#include "base/threads.h"
#include "data/stream.h"
#include "io/file_io.h"
#include "io/plan_file.h"
#include "ir/loss.h"
#include "report/frontier.h"
#include "train/peak_measurement.h"
#include "train/random_batches.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

// Small, so that random labels drive no weight out of range: a step that is not finite would be timed without its update.
constexpr double kLearningRate = 1e-3;

// A folder for the plans, gone when the sweep is over.
class PlanFolder {
 public:
  PlanFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "snug-sweep-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw_user_error("no folder can be made in '{}' (see TMPDIR)", name);
    path_ = name;
  }
  ~PlanFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PlanFolder(const PlanFolder&) = delete;
  PlanFolder& operator=(const PlanFolder&) = delete;

  std::filesystem::path file(std::size_t plan) const { return path_ / fmt::format("{}.plan", plan); }

 private:
  std::filesystem::path path_;
};

std::unique_ptr<data::Dataset> open_sweep_data(const SweepRequest& request) {
  return request.random_data ? nullptr : open_data(request.recipe);
}

FitRequest request_of(const SweepRequest& request, const data::Dataset* dataset, CostTable costs) {
  settings::Recipe recipe = request.recipe;
  recipe.budget_bytes.reset();
  if (request.random_data) recipe.data = "random";
  // One sweep, one precision.
  if (std::ranges::find(recipe.allow, "precision") != recipe.allow.end() && !recipe.methods.precision)
    throw UserError("a sweep measures one precision; give it with --precision, and leave precision out of --allow");
  if (std::ranges::find(recipe.allow, "sparse") != recipe.allow.end())
    throw UserError("a sweep measures one share of the weights; give it with --nonzero, and leave sparse out of --allow");
  return fit_request(recipe, dataset == nullptr ? random_description(recipe) : dataset->description(), std::move(costs));
}

// In a process of its own: what of the machine was not measured yet.
void measure_missing_costs(const SweepRequest& request) {
  if (request.costs == "none") return;
  run_in_child([&] {
    const Backend backend = open_backend(request.recipe);
    Costs costs = find_costs_to_measure(request.costs, backend);
    if (!costs.note.empty()) request.say(costs.note);
    measure_costs(request_of(request, open_sweep_data(request).get(), {}), backend, costs, request.say);
    return std::string();
  });
}

// A plan's description, as it goes from the process that plans to the one that reports.
Json plan_description(const PlannedPoint& planned, const Costs& costs, const Backend& backend) {
  return {{"planned", planned.plan.planned_peak_bytes.count()},
          {"methods", print_methods(planned.plan.methods)},
          {"predicted", can_predict(costs, backend) ? Json(planned.seconds) : Json(nullptr)},
          {"has_room", has_room(planned.plan, backend)}};
}

MeasuredPlan parse_description(const Json& json) {
  MeasuredPlan plan;
  plan.planned_peak_bytes = Bytes(json.at("planned").get<std::int64_t>());
  plan.methods = parse_methods(json.at("methods").get<std::string>());
  if (!json.at("predicted").is_null()) plan.predicted_step_seconds = json.at("predicted").get<double>();
  return plan;
}

// In a process of its own: every budget's plan. The plain plan is file 0, plan i of the sweep file i + 1.
Json plan_all(const SweepRequest& request, const PlanFolder& folder) {
  return Json::parse(run_in_child([&] {
    const Backend backend = open_backend(request.recipe);
    const Costs costs = find_costs(request.costs, backend);
    const SweepPlans planned =
        plan_sweep(request_of(request, open_sweep_data(request).get(), costs.table()), backend, request.between, request.points);
    const Throughput throughput = throughput_of(planned.plain.plan.program);
    Json result{{"threads", backend.threads},
                {"costs", describe_source(costs)},
                {"unit", throughput.unit},
                {"units_per_example", throughput.per_example}};
    result["plain"] = plan_description(planned.plain, costs, backend);
    io::write_text_file(folder.file(0), io::print_plan(planned.plain.plan));
    result["plans"] = Json::array();
    const std::string plain = io::print_plan(planned.plain.plan);
    for (std::size_t i = 0; i < planned.plans.size(); ++i) {
      const std::string text = io::print_plan(planned.plans[i].plan);
      if (text == plain) result["plain"]["same_as"] = i;
      result["plans"].push_back(plan_description(planned.plans[i], costs, backend));
      io::write_text_file(folder.file(i + 1), text);
    }
    result["points"] = Json::array();
    for (const auto& [budget, plan] : planned.budgets) result["points"].push_back({budget.count(), plan});
    result["frontier"] = report::frontier_json(planned.frontier);
    result["considered"] = report::considered_json(planned.frontier);
    return result.dump();
  }));
}

// Batches for a point's steps: the data's, read ahead as in training, or random ones.
class Batches {
 public:
  Batches(const SweepRequest& request, const Program& program) : dataset_(open_sweep_data(request)), batch_(program.batch) {
    if (dataset_ == nullptr) {
      random_ = std::make_unique<train::RandomBatches>(program, batch_, request.recipe.seed, 1);
      return;
    }
    if (dataset_->description().train_examples < batch_)
      throw_user_error("a batch of {} is more than the {} training images of '{}'", batch_,
                       dataset_->description().train_examples, request.recipe.data);
    stream_ = std::make_unique<data::Stream>(*dataset_, data::Split::train, batch_,
                                             data::StreamOptions{.seed = request.recipe.seed, .shuffle = true, .repeat = true});
  }

  // Always a whole batch: an epoch's short last one would be timed as one.
  train::Examples next() {
    if (random_) return (*random_)[0];
    while (true) {
      const data::Batch batch = *stream_->next();
      if (static_cast<std::int64_t>(batch.examples) == batch_) return {.inputs = batch.inputs, .count = batch.examples};
    }
  }

 private:
  std::unique_ptr<data::Dataset> dataset_;
  std::int64_t batch_;
  std::unique_ptr<train::RandomBatches> random_;
  std::unique_ptr<data::Stream> stream_;
};

double seconds_of_step(train::Session& session, const train::Examples& examples) {
  const auto start = std::chrono::steady_clock::now();
  session.train_step(examples);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// In a process of its own: trains a plan, first with a canary in the arena, then against the clock.
void train_plan(const SweepRequest& request, const std::filesystem::path& file, MeasuredPlan& plan) {
  const Json result = Json::parse(run_in_child([&] {
    const Backend backend = open_backend(request.recipe);
    train::Session session(io::parse_plan(io::read_text_file(file, std::uint64_t{1} << 32U)), backend, request.recipe.seed);
    session.set_learning_rate(kLearningRate);
    configure(session, request.recipe);
    Batches batches(request, session.plan().program);
    train::PeakMeasurement peak(session);
    while (peak.running()) {
      const train::Examples examples = batches.next();
      session.train_step(examples);
      peak.after_step(examples);
    }
    std::vector<double> seconds(static_cast<std::size_t>(request.steps));
    for (double& s : seconds) s = seconds_of_step(session, batches.next());
    const train::Overheads overheads = train::measure_overheads(session);
    Json json{{"measured", session.executor().measured_peak_bytes().count()},
              {"resident", overheads.peak_resident_bytes.count()},
              {"seconds", median(seconds)}};
    train::put_overheads(json, overheads);
    return json.dump();
  }));
  plan.measured_peak_bytes = Bytes(result.at("measured").get<std::int64_t>());
  plan.overheads = train::read_overheads(result);
  plan.overheads.peak_resident_bytes = Bytes(result.at("resident").get<std::int64_t>());
  plan.step_seconds = result.at("seconds").get<double>();
}

std::string progress_line(const Sweep& sweep, std::size_t point) {
  const MeasuredPlan& plan = sweep.plans[sweep.points[point].plan];
  return fmt::format("{}/{}: {} in a budget of {}: {:.1f} {}/s", point + 1, sweep.points.size(),
                     format_bytes(plan.planned_peak_bytes), format_bytes(sweep.points[point].budget_bytes),
                     sweep.units_per_second(plan.step_seconds), sweep.unit);
}

}  // namespace

Sweep run_sweep(const SweepRequest& request) {
  measure_missing_costs(request);
  const PlanFolder folder;
  const Json planned = plan_all(request, folder);

  Sweep sweep{.model = request.recipe.model,
              .data = request.random_data ? "random" : request.recipe.data,
              .batch = request.recipe.batch,
              .unit = planned.at("unit").get<std::string>(),
              .units_per_example = planned.at("units_per_example").get<std::int64_t>(),
              .precision = std::string(precision_name(request.recipe.methods.precision.value_or(DType::f32))),
              .device = request.recipe.device,
              .nonzero = request.recipe.methods.nonzero.value_or(1),
              .threads = planned.at("threads").get<int>(),
              .steps = request.steps,
              .costs = planned.at("costs").get<std::string>(),
              .frontier = planned.at("frontier"),
              .considered = planned.at("considered")};
  MeasuredPlan plain = parse_description(planned.at("plain"));
  sweep.plain_peak_bytes = plain.planned_peak_bytes;
  for (const Json& plan : planned.at("plans")) sweep.plans.push_back(parse_description(plan));
  for (const Json& point : planned.at("points"))
    sweep.points.push_back({.budget_bytes = Bytes(point.at(0).get<std::int64_t>()), .plan = point.at(1).get<std::size_t>()});

  if (planned.at("plain").at("has_room").get<bool>()) {
    train_plan(request, folder.file(0), plain);
    sweep.plain = plain;
    request.say(fmt::format("plain: {}: {:.1f} {}/s", format_bytes(plain.planned_peak_bytes),
                            sweep.units_per_second(plain.step_seconds), sweep.unit));
  } else {
    request.say(
        fmt::format("plain training takes {}, more than this machine has: not measured", format_bytes(plain.planned_peak_bytes)));
  }
  std::vector<bool> trained(sweep.plans.size());
  if (sweep.plain && planned.at("plain").contains("same_as")) {
    const auto same = planned.at("plain").at("same_as").get<std::size_t>();
    sweep.plans[same] = *sweep.plain;
    trained[same] = true;
  }
  std::vector<std::optional<std::size_t>> first_at(sweep.plans.size());
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    SweepPoint& point = sweep.points[i];
    point.same_as = first_at[point.plan];
    if (point.same_as) continue;
    first_at[point.plan] = i;
    if (!trained[point.plan]) train_plan(request, folder.file(point.plan + 1), sweep.plans[point.plan]);
    request.say(progress_line(sweep, i));
  }
  return sweep;
}

std::optional<double> Sweep::prediction_error(const MeasuredPlan& plan) {
  if (!plan.predicted_step_seconds) return std::nullopt;
  return *plan.predicted_step_seconds / plan.step_seconds - 1;
}

std::optional<double> Sweep::median_prediction_error() const {
  std::vector<double> errors;
  for (const SweepPoint& point : points) {
    if (const auto error = prediction_error(plans[point.plan])) errors.push_back(std::abs(*error));
  }
  return errors.empty() ? std::nullopt : std::optional(median(errors));
}

std::optional<double> Sweep::overhead(const MeasuredPlan& plan) const {
  return plain ? std::optional(plan.step_seconds / plain->step_seconds - 1) : std::nullopt;
}

}  // namespace snug
