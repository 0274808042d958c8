// The median of a list, used for times, since outliers do not change it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace snug {

// The upper of the two middle ones where there are two; 0 for an empty list.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace snug
