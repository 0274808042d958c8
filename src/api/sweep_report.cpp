// A sweep as JSON and as a table.
#include <fmt/format.h>

#include "api/sweep.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json plan_json(const Sweep& sweep, const MeasuredPlan& plan) {
  Json json{{"planned_peak_bytes", plan.planned_peak_bytes.count()},
            {"measured_peak_bytes", plan.measured_peak_bytes.count()},
            {"peak_resident_bytes", plan.overheads.peak_resident_bytes.count()}};
  train::put_overheads(json, plan.overheads);
  json.update({{"microbatch", *plan.methods.microbatch},
               {"checkpoint", to_string(*plan.methods.checkpoint)},
               {"compress_bits", plan.methods.compress_bits ? Json(*plan.methods.compress_bits) : Json(nullptr)},
               {"predicted_step_seconds", or_null(plan.predicted_step_seconds)},
               {"step_seconds", plan.step_seconds},
               {sweep.unit + "_per_second", sweep.units_per_second(plan.step_seconds)},
               {"overhead", or_null(sweep.overhead(plan))},
               {"prediction_error", or_null(Sweep::prediction_error(plan))}});
  return json;
}

// Beside the arena, over everything that was trained.
std::optional<DriverMemory> largest_driver_memory(const Sweep& sweep) {
  std::optional<DriverMemory> largest = sweep.plain ? sweep.plain->overheads.device : std::nullopt;
  for (const MeasuredPlan& plan : sweep.plans) {
    const auto& one = plan.overheads.device;
    if (one && (!largest || one->bytes > largest->bytes)) largest = one;
  }
  return largest;
}

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:+.1f}%", 100 * *share) : "-"; }

std::string row(const Sweep& sweep, const std::string& budget, const MeasuredPlan& plan, const std::string& note) {
  std::string line = fmt::format(
      "{:>10} {:>10} {:>10} {:>10} {:>5}  {:>8.1f} {:>8} {:>9} {:>8}  {}{}{}", budget, format_bytes(plan.planned_peak_bytes),
      format_bytes(plan.measured_peak_bytes), format_bytes(plan.overheads.peak_resident_bytes), *plan.methods.microbatch,
      sweep.units_per_second(plan.step_seconds), percent(sweep.overhead(plan)),
      plan.predicted_step_seconds ? fmt::format("{:.1f}", sweep.units_per_second(*plan.predicted_step_seconds)) : "-",
      percent(Sweep::prediction_error(plan)), to_string(*plan.methods.checkpoint),
      plan.methods.compress_bits ? fmt::format(", {} bits", *plan.methods.compress_bits) : "", note);
  return line + "\n";
}

}  // namespace

Json sweep_json(const Sweep& sweep) {
  Json json{{"model", sweep.model},
            {"batch", sweep.batch},
            {"precision", sweep.precision},
            {"nonzero", sweep.nonzero},
            {"device", sweep.device},
            {"threads", sweep.threads},
            {"data", sweep.data},
            {"steps", sweep.steps},
            {"costs", sweep.costs},
            {"plain_peak_bytes", sweep.plain_peak_bytes.count()},
            {"plain", sweep.plain ? plan_json(sweep, *sweep.plain) : Json(nullptr)}};
  Json& points = json["points"] = Json::array();
  for (const SweepPoint& point : sweep.points) {
    Json entry{{"budget_bytes", point.budget_bytes.count()}};
    entry.update(plan_json(sweep, sweep.plans[point.plan]));
    entry["same_plan_as"] = or_null(point.same_as);
    points.push_back(std::move(entry));
  }
  json["median_prediction_error"] = or_null(sweep.median_prediction_error());
  json["frontier"] = sweep.frontier;
  json["considered"] = sweep.considered;
  return json;
}

std::string sweep_text(const Sweep& sweep) {
  std::string out = fmt::format("{}, batch {}, {} on {}, {} thread{}; {}; {} timed step{} a point\n\n", sweep.model, sweep.batch,
                                sweep.precision, sweep.device, sweep.threads, sweep.threads == 1 ? "" : "s",
                                sweep.data == "random" ? "random " + sweep.unit : "data " + sweep.data, sweep.steps,
                                sweep.steps == 1 ? "" : "s");
  out += fmt::format("{:>10} {:>10} {:>10} {:>10} {:>5}  {:>8} {:>8} {:>9} {:>8}  {}\n", "budget", "planned", "measured",
                     "resident", "micro", sweep.unit + "/s", "slower", "predicted", "error", "checkpoint");
  if (sweep.plain) out += row(sweep, "plain", *sweep.plain, "");
  for (const SweepPoint& point : sweep.points) {
    out += row(sweep, format_bytes(point.budget_bytes), sweep.plans[point.plan],
               point.same_as
                   ? fmt::format(" (the plan of {}, not trained again)", format_bytes(sweep.points[*point.same_as].budget_bytes))
                   : "");
  }
  if (!sweep.plain)
    out += fmt::format("plain training takes {}, more than this machine has\n", format_bytes(sweep.plain_peak_bytes));
  if (const auto driver = largest_driver_memory(sweep)) out += "at most " + train::describe(*driver) + "\n";
  out += fmt::format("\npredicted from costs: {}; median error {}\n", sweep.costs,
                     sweep.median_prediction_error() ? fmt::format("{:.1f}%", 100 * *sweep.median_prediction_error()) : "-");
  return out;
}

}  // namespace snug
