#include "plan/narrower.h"

#include <algorithm>

namespace snug {

std::optional<FitRequest> narrowed(const FitRequest& request) {
  if (!request.narrower || !request.allowed.has(Exactness::precision)) return std::nullopt;
  FitRequest narrow = request;
  narrow.model = request.narrower->model;
  narrow.options.sgd = request.narrower->sgd;
  narrow.narrower.reset();
  return narrow;
}

Frontier merged(const Frontier& wide, const Frontier& narrow) {
  std::vector<FrontierPoint> all = wide.points;
  for (FrontierPoint point : narrow.points) {
    point.narrowed = true;
    all.push_back(point);
  }
  std::stable_sort(all.begin(), all.end(), [](const FrontierPoint& a, const FrontierPoint& b) {
    return std::pair(a.planned_peak_bytes, a.seconds) < std::pair(b.planned_peak_bytes, b.seconds);
  });
  Frontier result{.points = {}, .considered = wide.considered};
  for (FrontierPoint point : narrow.considered) {
    point.narrowed = true;
    result.considered.push_back(point);
  }
  for (const FrontierPoint& point : all) {
    if (result.points.empty() || point.seconds < result.points.back().seconds) result.points.push_back(point);
  }
  return result;
}

PlacedPoint better_of(PlacedPoint wide, PlacedPoint narrow, const std::optional<Bytes>& budget) {
  narrow.point.narrowed = true;
  const auto fits = [&](const PlacedPoint& found) { return !budget || found.point.planned_peak_bytes <= *budget; };
  const auto is_narrow_better = [&] {
    const FrontierPoint& a = narrow.point;
    const FrontierPoint& b = wide.point;
    if (fits(narrow) != fits(wide)) return fits(narrow);
    if (!fits(narrow)) return a.planned_peak_bytes < b.planned_peak_bytes;
    return std::pair(a.seconds, a.planned_peak_bytes) < std::pair(b.seconds, b.planned_peak_bytes);
  };
  return is_narrow_better() ? std::move(narrow) : std::move(wide);
}

}  // namespace snug
