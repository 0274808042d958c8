#include "backends/rewiring.h"

#include <algorithm>

namespace snug::backends {

void share_growth(std::int64_t total, const std::vector<std::int64_t>& survivors, const std::vector<std::int64_t>& room,
                  std::vector<std::int64_t>& growth) {
  std::ranges::fill(growth, 0);
  const auto is_open = [&](std::size_t t) { return growth[t] < room[t]; };
  std::int64_t left = total;
  while (left > 0) {
    std::int64_t weights = 0;
    for (std::size_t t = 0; t < room.size(); ++t) weights += is_open(t) ? survivors[t] : 0;
    // Where nothing has survived, room decides.
    const std::vector<std::int64_t>& weight = weights > 0 ? survivors : room;
    if (weights == 0) {
      for (std::size_t t = 0; t < room.size(); ++t) weights += is_open(t) ? room[t] : 0;
    }
    if (weights == 0) return;
    // Both factors are below 2^31.
    const auto share = [&](std::size_t t) { return left * weight[t] / weights; };
    std::int64_t taken = 0;
    for (std::size_t t = 0; t < room.size(); ++t) {
      if (!is_open(t) || share(t) < room[t]) continue;
      growth[t] = room[t];
      taken += room[t];
    }
    if (taken > 0) {
      left -= taken;
      continue;
    }
    std::int64_t given = 0;
    for (std::size_t t = 0; t < room.size(); ++t) given += is_open(t) ? share(t) : 0;
    // The remainders, largest first, of equal ones the first.
    const auto remainder = [&](std::size_t t) { return left * weight[t] % weights; };
    for (std::int64_t extra = left - given; extra > 0; --extra) {
      std::size_t best = room.size();
      for (std::size_t t = 0; t < room.size(); ++t) {
        if (growth[t] == 0 && room[t] > 0 && (best == room.size() || remainder(t) > remainder(best))) best = t;
      }
      growth[best] = share(best) + 1;
    }
    for (std::size_t t = 0; t < room.size(); ++t) {
      if (growth[t] == 0) growth[t] = room[t] > 0 ? share(t) : 0;
    }
    return;
  }
}

}  // namespace snug::backends
