#include "plan/variants.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace snug {

std::vector<std::vector<Variant>> rungs(const FitRequest& request, const Backend& backend) {
  std::vector<Variant> dense{{}};
  if (request.in_16_bits && request.allowed.has(Exactness::precision)) dense.push_back({.narrowed = true});
  std::vector<std::vector<Variant>> result{dense};
  if (!request.allowed.has(Exactness::sparse) || !can_be_sparse(request, backend)) return result;
  for (const double share : kSolverNonzero) {
    result.push_back(dense);
    for (Variant& variant : result.back()) variant.nonzero = share;
  }
  return result;
}

FitRequest as_variant(const FitRequest& request, const Variant& variant) {
  FitRequest asked = request;
  if (variant.narrowed) {
    SNUG_CHECK(request.in_16_bits, "a request that leaves 16 bits out is asked for them");
    asked.options.precision = request.in_16_bits->precision;
    asked.options.update = request.in_16_bits->update;
  }
  if (variant.nonzero) asked.options.sparse.nonzero = *variant.nonzero;
  asked.in_16_bits.reset();
  return asked;
}

Variant variant_of(const FrontierPoint& point) { return {.narrowed = point.narrowed, .nonzero = point.nonzero}; }

void mark(FrontierPoint& point, const Variant& variant) {
  point.narrowed = variant.narrowed;
  point.nonzero = variant.nonzero;
}

Frontier marked(Frontier frontier, const Variant& variant) {
  for (FrontierPoint& point : frontier.points) mark(point, variant);
  for (FrontierPoint& point : frontier.considered) mark(point, variant);
  return frontier;
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

Frontier continued(Frontier one, const Frontier& below) {
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
