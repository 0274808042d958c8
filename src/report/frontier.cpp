#include "report/frontier.h"

#include <algorithm>

#include "report/text.h"
#include "report/text_parts.h"

namespace snug::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::ptrdiff_t kNeighbors = 4;  // on either side of the chosen plan

std::string signed_bytes(Bytes from, Bytes to) {
  return to < from ? "-" + format_bytes(from - to) : "+" + format_bytes(to - from);
}

// "+12.5%": how much slower than the fastest.
std::string overhead(double seconds, double fastest) {
  return fastest > 0 ? fmt::format("{:+.1f}%", 100 * (seconds / fastest - 1)) : "";
}

// Where the chosen plan is or would be: at the first point that takes at least its bytes.
std::ptrdiff_t place_of(const Frontier& frontier, const FrontierPoint& chosen) {
  const auto found = std::find_if(frontier.points.begin(), frontier.points.end(), [&](const FrontierPoint& point) {
    return point.planned_peak_bytes >= chosen.planned_peak_bytes;
  });
  return found - frontier.points.begin();
}

void put_points(std::string& out, const Frontier& frontier, const FrontierPoint& chosen) {
  const auto last = static_cast<std::ptrdiff_t>(frontier.points.size()) - 1;
  const std::ptrdiff_t at = std::min(place_of(frontier, chosen), last);
  const double fastest = frontier.points.back().seconds;
  put(out, "  {:>10}{:>13}{:>9}{:>11}  {}\n", "bytes", "vs this plan", "time", "microbatch", "checkpoint");
  bool skipped = false;
  for (std::ptrdiff_t i = 0; i <= last; ++i) {
    if (i != 0 && i != last && (i < at - kNeighbors || i > at + kNeighbors)) {
      if (!skipped) put(out, "  {:>10}\n", "...");
      skipped = true;
      continue;
    }
    skipped = false;
    const FrontierPoint& point = frontier.points[static_cast<std::size_t>(i)];
    const bool is_chosen = point.planned_peak_bytes == chosen.planned_peak_bytes;
    // Lossy methods come first: a line may be cut off at its end.
    const Methods& methods = point.methods;
    std::string how = methods.nonzero ? fmt::format("{:g}% nonzero, ", 100 * *methods.nonzero) : "";
    if (methods.precision != DType::f32) how += "16 bits, ";
    how += to_string(*methods.checkpoint);
    if (methods.compress_bits) how += fmt::format(", activations in {} bits", *methods.compress_bits);
    if (methods.fuse_update.value_or(false)) how += ", updated in backward";
    if (methods.workspace_limit) how += fmt::format(", workspace {}", format_bytes(*methods.workspace_limit));
    put(out, "{} {:>10}{:>13}{:>9}{:>11}  {}\n", is_chosen ? ">" : " ", format_bytes(point.planned_peak_bytes),
        is_chosen ? "this plan" : signed_bytes(chosen.planned_peak_bytes, point.planned_peak_bytes),
        overhead(point.seconds, fastest), *methods.microbatch, shorten(how, 34));
  }
}

Json points_json(std::span<const FrontierPoint> points) {
  Json result = Json::array();
  for (const FrontierPoint& point : points) {
    const Methods& methods = point.methods;
    result.push_back(
        {{"bytes", point.planned_peak_bytes.count()},
         {"seconds", point.seconds},
         {"microbatch", *methods.microbatch},
         {"checkpoint", to_string(*methods.checkpoint)},
         {"compress_bits", methods.compress_bits ? Json(*methods.compress_bits) : Json(nullptr)},
         {"fused_update", methods.fuse_update.value_or(false)},
         {"16_bits", methods.precision != DType::f32},
         {"nonzero", methods.nonzero ? Json(*methods.nonzero) : Json(nullptr)},
         {"workspace_limit_bytes", methods.workspace_limit ? Json(methods.workspace_limit->count()) : Json(nullptr)}});
  }
  return result;
}

}  // namespace

std::string explanation_text(const Frontier& frontier, const FrontierPoint& chosen, std::span<const MethodStep> steps) {
  std::string out;
  put(out, "What one more MB buys: {} that no other of {} beats in bytes and time\n",
      frontier.points.size() == 1 ? "1 plan" : format_count(static_cast<std::int64_t>(frontier.points.size())) + " plans",
      format_count(static_cast<std::int64_t>(frontier.considered.size())));
  put_points(out, frontier, chosen);
  put(out, "\nWhat each method does\n");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const MethodStep& step = steps[i];
    put(out, "  {:>10}{:>12}{:>9}  {}\n", format_bytes(step.planned_peak_bytes),
        i == 0 ? "" : signed_bytes(steps[i - 1].planned_peak_bytes, step.planned_peak_bytes),
        i == 0 ? "" : overhead(step.seconds, steps[i - 1].seconds), step.method);
  }
  put(out, "Times are predicted: relative to the fastest plan, and to the method before.\n");
  return trim_lines(out);
}

Json frontier_json(const Frontier& frontier) { return points_json(frontier.points); }

Json considered_json(const Frontier& frontier) { return points_json(frontier.considered); }

Json methods_json(std::span<const MethodStep> steps) {
  Json result = Json::array();
  for (const MethodStep& step : steps) {
    result.push_back({{"method", step.method}, {"bytes", step.planned_peak_bytes.count()}, {"seconds", step.seconds}});
  }
  return result;
}

void put_explanation(Json& json, const Frontier& frontier, std::span<const MethodStep> steps) {
  json["frontier"] = frontier_json(frontier);
  json["considered"] = considered_json(frontier);
  json["methods"] = methods_json(steps);
}

}  // namespace snug::report
