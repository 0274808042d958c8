#include "plan/even_splits.h"

#include <algorithm>
#include <cmath>

namespace snug {

std::vector<std::int64_t> even_splits(std::int64_t batch, std::int64_t least) {
  std::vector<std::int64_t> sizes{batch};
  // With more parts than this, ceil(batch / parts) falls by at most one per part, so every smaller size occurs.
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(batch)));
  for (std::int64_t parts = 2; parts <= root; ++parts) {
    const std::int64_t size = (batch + parts - 1) / parts;
    if (size >= least && size < sizes.back()) sizes.push_back(size);
  }
  for (std::int64_t size = std::min(sizes.back() - 1, batch / root + 1); size >= least; --size) {
    const std::int64_t parts = (batch + size - 1) / size;
    if ((batch + parts - 1) / parts == size) sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::int64_t> even_splits_in_groups(std::int64_t batch, std::int64_t group) {
  std::vector<std::int64_t> sizes{batch};
  for (const std::int64_t groups : even_splits((batch + group - 1) / group, 1)) {
    if (groups * group < sizes.back()) sizes.push_back(groups * group);
  }
  return sizes;
}

std::vector<std::int64_t> thin_out(const std::vector<std::int64_t>& sizes, std::size_t most) {
  if (sizes.size() <= most) return sizes;
  const double ratio =
      std::pow(static_cast<double>(sizes.back()) / static_cast<double>(sizes.front()), 1.0 / static_cast<double>(most - 1));
  std::vector<std::int64_t> kept{sizes.front()};
  for (const std::int64_t size : sizes) {
    if (static_cast<double>(size) <= static_cast<double>(kept.back()) * ratio) kept.push_back(size);
  }
  if (kept.back() != sizes.back()) kept.push_back(sizes.back());
  return kept;
}

}  // namespace snug
