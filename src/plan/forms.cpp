#include "plan/forms.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace snug {

std::vector<std::vector<FitRequest>> rungs(const FitRequest& request, const Backend& backend) {
  std::vector<FitRequest> dense{request};
  dense.front().given.precision = request.given.precision.value_or(DType::f32);
  if (!request.given.precision && request.narrow_precision && request.allowed.has(Exactness::precision)) {
    dense.push_back(request);
    dense.back().given.precision = request.narrow_precision;
  }
  std::vector<std::vector<FitRequest>> result{dense};
  if (!request.allowed.has(Exactness::sparse) || !can_be_sparse(request, backend)) return result;
  for (const double share : kSolverNonzero) {
    result.push_back(dense);
    for (FitRequest& form : result.back()) form.given.nonzero = share;
  }
  return result;
}

Frontier merged(Frontier one, const Frontier& other) {
  std::vector<FrontierPoint> all = std::exchange(one.points, {});
  all.insert(all.end(), other.points.begin(), other.points.end());
  std::stable_sort(all.begin(), all.end(), [](const FrontierPoint& a, const FrontierPoint& b) {
    return std::tie(a.planned_peak_bytes, a.seconds) < std::tie(b.planned_peak_bytes, b.seconds);
  });
  for (const FrontierPoint& point : all) {
    if (one.points.empty() || point.seconds < one.points.back().seconds) one.points.push_back(point);
  }
  one.considered.insert(one.considered.end(), other.considered.begin(), other.considered.end());
  return one;
}

Frontier extended_below(Frontier one, const Frontier& below) {
  std::vector<FrontierPoint> points;
  for (const FrontierPoint& point : below.points) {
    if (one.points.empty() || point.planned_peak_bytes < one.points.front().planned_peak_bytes) points.push_back(point);
  }
  one.points.insert(one.points.begin(), points.begin(), points.end());
  one.considered.insert(one.considered.end(), below.considered.begin(), below.considered.end());
  return one;
}

PlacedPoint better_of(PlacedPoint one, PlacedPoint other, Bytes budget) {
  const FrontierPoint& a = one.point;
  const FrontierPoint& b = other.point;
  const bool a_fits = a.planned_peak_bytes <= budget, b_fits = b.planned_peak_bytes <= budget;
  const bool takes_other = a_fits != b_fits ? b_fits
                           : !b_fits        ? b.planned_peak_bytes < a.planned_peak_bytes
                                     : std::tie(b.seconds, b.planned_peak_bytes) < std::tie(a.seconds, a.planned_peak_bytes);
  return takes_other ? std::move(other) : std::move(one);
}

}  // namespace snug
