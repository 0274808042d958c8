#include "backends/cpu/layout_map.h"

#include "backends/cpu/onednn/onednn.h"
#include "base/error.h"

namespace snug::backends::cpu {

LayoutMap::LayoutMap(const dnnl::memory::desc& description) {
  const auto dims = description.dims();
  SNUG_CHECK(dims.size() <= kRank, "a value of {} dimensions has too many", dims.size());
  const auto& blocking = description.data.format_desc.blocking;
  for (std::size_t dim = 0; dim < kRank; ++dim) {
    const bool is_there = dim < dims.size();
    for (std::int64_t i = 0; i < (is_there ? dims[dim] : 1); ++i) {
      std::int64_t place = 0;
      std::int64_t outer = i;
      std::int64_t distance = 1;
      for (int block = blocking.inner_nblks - 1; block >= 0; --block) {
        if (static_cast<std::size_t>(blocking.inner_idxs[block]) == dim) {
          place += outer % blocking.inner_blks[block] * distance;
          outer /= blocking.inner_blks[block];
        }
        distance *= blocking.inner_blks[block];
      }
      places_[dim].push_back(place + (is_there ? outer * blocking.strides[dim] : 0));
    }
  }
}

LayoutMap::LayoutMap(const Type& type) : LayoutMap(descriptor(type)) {}

}  // namespace snug::backends::cpu
