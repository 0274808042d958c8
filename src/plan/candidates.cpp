#include "plan/candidates.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace snug {

void sort_by_time(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.point.seconds, a.point.planned_peak_bytes) < std::pair(b.point.seconds, b.point.planned_peak_bytes);
  });
}

std::vector<Candidate> on_frontier(std::vector<Candidate> candidates) {
  sort_by_time(candidates);
  std::vector<Candidate> front;
  for (const Candidate& candidate : candidates) {
    if (front.empty() || candidate.point.planned_peak_bytes < front.back().point.planned_peak_bytes) front.push_back(candidate);
  }
  return front;
}

std::vector<Candidate> worth_placing(const std::vector<Candidate>& sorted, std::int64_t most) {
  const std::vector<Candidate> front = on_frontier(sorted);
  if (static_cast<std::int64_t>(front.size()) <= most) return sorted;
  const auto bytes = [](const Candidate& candidate) { return static_cast<double>(candidate.point.planned_peak_bytes.count()); };
  const double step = std::pow(bytes(front.back()) / bytes(front.front()), 1.0 / static_cast<double>(most));
  std::vector<Candidate> chosen{front.front()};
  for (const Candidate& candidate : front) {
    if (bytes(candidate) <= bytes(chosen.back()) * step) chosen.push_back(candidate);
  }
  if (bytes(chosen.back()) > bytes(front.back())) chosen.push_back(front.back());
  return chosen;
}

}  // namespace snug
