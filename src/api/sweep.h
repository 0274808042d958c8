// Memory against throughput, measured: budgets from what plain training takes down to the smallest that is possible, each
// planned and trained for a few steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "settings/recipe.h"
#include "train/overheads.h"

namespace snug {

struct SweepRequest {
  settings::Recipe recipe;                         // its budget is not looked at
  bool random_data = false;                        // images of the model's own shape instead of the recipe's data
  std::optional<std::pair<Bytes, Bytes>> between;  // smallest and largest budget; nothing: all that make a difference
  std::size_t points = 20;                         // budgets, in even steps of their logarithm, both ends included
  int steps = 5;                                   // timed at each point, after those that measure the peak
  std::optional<std::string> costs;                // as in find_costs(); measured first where they are missing
  // Gets a line about what is being done.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// One plan, trained.
struct MeasuredPlan {
  Bytes planned_peak_bytes;
  Bytes measured_peak_bytes;
  train::Overheads overheads;  // of a process that did nothing else
  Methods methods;
  std::optional<double> predicted_step_seconds;
  double step_seconds = 0;  // median
};

struct SweepPoint {
  Bytes budget_bytes;
  std::size_t plan = 0;                // in Sweep::plans
  std::optional<std::size_t> same_as;  // the earlier point with this plan, whose figures these are
};

struct Sweep {
  std::string model;
  std::string data;  // "random" or the recipe's
  std::int64_t batch = 0;
  std::string unit = "images";  // of speed, as the model's loss says
  std::int64_t units_per_example = 1;
  std::string precision, device;
  double nonzero = 1;
  int threads = 0;
  int steps = 0;
  std::string costs;                  // what predictions come from
  std::optional<MeasuredPlan> plain;  // the whole batch at once, nothing recomputed; nothing where the machine lacks the memory
  Bytes plain_peak_bytes;             // what that takes
  std::vector<MeasuredPlan> plans;    // each trained once
  std::vector<SweepPoint> points;     // by falling budget
  nlohmann::ordered_json frontier;    // that the plans were taken from, and all that was considered for it: report/frontier.h
  nlohmann::ordered_json considered;

  // In the sweep's unit, for a step of so many seconds.
  double units_per_second(double step_seconds) const {
    return static_cast<double>(batch) * static_cast<double>(units_per_example) / step_seconds;
  }
  // Predicted over measured time, less 1; nothing without a prediction.
  static std::optional<double> prediction_error(const MeasuredPlan& plan);
  // Of its absolute value over all points.
  std::optional<double> median_prediction_error() const;
  // Measured time over the plain plan's, less 1.
  std::optional<double> overhead(const MeasuredPlan& plan) const;
};

// UserError and DoesNotFit as planning and training give them. Everything that allocates runs in processes of its own, so call it
// before the process starts threads.
Sweep run_sweep(const SweepRequest& request);

// Budgets from `largest` down to `smallest`, in even steps of their logarithm; as many as asked, but none twice.
std::vector<Bytes> spread_budgets(Bytes smallest, Bytes largest, std::size_t points);

nlohmann::ordered_json sweep_json(const Sweep& sweep);
std::string sweep_text(const Sweep& sweep);

}  // namespace snug
