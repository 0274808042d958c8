#include "backends/sparse_store.h"

#include <algorithm>

namespace snug::backends {

void draw_pattern(const ops::SparseGrid& grid, std::span<const std::int64_t> nonzeros, std::uint64_t seed,
                  std::span<std::uint8_t> columns, std::int32_t* rows) {
  std::ranges::fill(columns, std::uint8_t{0});
  PlaceWords words([seed](std::uint64_t block) { return philox(seed, block, ops::counter_high(ops::kPatternPurpose, 0)); });
  std::int64_t k = 0;
  std::uint64_t place = 0;
  for (std::size_t t = 0; t < grid.rows.size(); ++t) {
    std::int64_t wanted = nonzeros[t];
    std::int64_t left = grid.elements(t);
    for (std::int64_t row = 0; row < grid.rows[t]; ++row) {
      *rows++ = static_cast<std::int32_t>(k);
      for (std::int64_t column = 0; column < grid.columns[t]; ++column, ++place, --left) {
        if (wanted == 0 || !ops::takes_place(words(place), wanted, left)) continue;
        put_column(columns.data(), grid.bits, k++, column);
        --wanted;
      }
    }
  }
  *rows = static_cast<std::int32_t>(k);
}

}  // namespace snug::backends
