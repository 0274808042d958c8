// The inner loops of direct sparse convolution, over one row of the sparse store and one tile of an image whose channels are
// consecutive: `at[k]` is where the tile begins for nonzero k, by its channel and tap.
#pragma once

#include <cstdint>

namespace snug::backends::cpu::simd {

// A row of the store, for the loops.
struct TileRow {
  const float* weights;
  const std::int32_t* at;
  std::int64_t count;
};

// Loops process whole vectors: outputs have room for a length rounded up to this, and so do inputs after a tile.
inline constexpr std::int64_t kMostTileLanes = 64;

// out[j] = bias + sum over k of weights[k] tile[at[k] + j]
void tile_product(const TileRow& row, const float* tile, float bias, float* out, std::int64_t length);
// tile[at[k] + j] += weights[k] dy[j] for every k; dy is 0 after `length`
void tile_scatter(const TileRow& row, const float* dy, float* tile, std::int64_t length);
// sums[k] += sum over j of dy[j] tile[at[k] + j]; weights are not read
void tile_dots(const TileRow& row, const float* dy, const float* tile, float* sums, std::int64_t length);

}  // namespace snug::backends::cpu::simd
