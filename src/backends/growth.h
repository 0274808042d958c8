// How many new values each tensor of a sparse store gets when it is rewired, and what the threshold is afterwards: the same
// arithmetic on the host and in a CUDA kernel.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace snug::backends {

// `total` new values in proportion to the survivors, by largest remainders; what a full tensor cannot take goes to the others.
// `room`: empty places.
struct GrowthShares {
  int tensors;
  const std::int64_t* survivors;
  const std::int64_t* room;
  std::int64_t* growth;

  SNUG_HOST_DEVICE void share(std::int64_t total) const {
    for (int t = 0; t < tensors; ++t) growth[t] = 0;
    std::int64_t left = total;
    while (left > 0) {
      // Where nothing has survived, room decides.
      const std::int64_t* weight = survivors;
      std::int64_t weights = sum_of_open(weight);
      if (weights == 0) weights = sum_of_open(weight = room);
      if (weights == 0) return;
      std::int64_t taken = 0;
      // Both factors are below 2^31.
      for (int t = 0; t < tensors; ++t) {
        if (!is_open(t) || left * weight[t] / weights < room[t]) continue;
        growth[t] = room[t];
        taken += room[t];
      }
      if (taken == 0) return share_among_open(left, weight, weights);
      left -= taken;
    }
  }

 private:
  SNUG_HOST_DEVICE bool is_open(int t) const { return growth[t] < room[t]; }

  SNUG_HOST_DEVICE std::int64_t sum_of_open(const std::int64_t* weight) const {
    std::int64_t sum = 0;
    for (int t = 0; t < tensors; ++t) sum += is_open(t) ? weight[t] : 0;
    return sum;
  }

  // Shares the rest when no share fills its tensor.
  SNUG_HOST_DEVICE void share_among_open(std::int64_t left, const std::int64_t* weight, std::int64_t weights) const {
    std::int64_t given = 0;
    for (int t = 0; t < tensors; ++t) given += is_open(t) ? left * weight[t] / weights : 0;
    // The remainders, largest first, of equal ones the first.
    for (std::int64_t extra = left - given; extra > 0; --extra) {
      int best = -1;
      std::int64_t largest = -1;
      for (int t = 0; t < tensors; ++t) {
        if (growth[t] != 0 || room[t] == 0 || left * weight[t] % weights <= largest) continue;
        best = t;
        largest = left * weight[t] % weights;
      }
      growth[best] = left * weight[best] / weights + 1;
    }
    for (int t = 0; t < tensors; ++t) {
      if (growth[t] == 0) growth[t] = room[t] > 0 ? left * weight[t] / weights : 0;
    }
  }
};

// The threshold after a rewiring that pruned that many.
SNUG_HOST_DEVICE inline double adapted_threshold(double threshold, std::int64_t pruned, std::int64_t target) {
  const auto aim = static_cast<double>(target);
  if (static_cast<double>(pruned) < 0.9 * aim) return 2 * threshold;
  if (static_cast<double>(pruned) > 1.1 * aim) return threshold / 2;
  return threshold;
}

}  // namespace snug::backends
