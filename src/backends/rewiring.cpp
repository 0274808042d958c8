#include "backends/rewiring.h"

namespace snug::backends {

void share_growth(std::int64_t total, const std::vector<std::int64_t>& survivors, const std::vector<std::int64_t>& room,
                  std::vector<std::int64_t>& growth) {
  GrowthShares{
      .tensors = static_cast<int>(room.size()), .survivors = survivors.data(), .room = room.data(), .growth = growth.data()}
      .share(total);
}

}  // namespace snug::backends
