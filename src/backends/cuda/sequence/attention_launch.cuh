// What launches of attention on tensor cores share: the columns that a kernel is made for, and its shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/device/check.h"
#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/attention.h"
#include "backends/cuda/sequence/attention_tiles.cuh"

namespace snug::backends::cuda::launch {

template <int D, bool Drops>
struct TileChoice {
  static constexpr int kColumns = D;
  static constexpr bool kDrops = Drops;
};

// Calls body(TileChoice) with the fewest columns that hold a head.
template <typename Body>
void with_tile_choice(const AttentionShape& shape, const AttentionRule& rule, const Body& body) {
  const auto with = [&](auto dropping, auto keeping) { rule.drops ? body(dropping) : body(keeping); };
  static_assert(kMostTiledHeadSize == 128);
  if (shape.head_size <= 32) return with(TileChoice<32, true>{}, TileChoice<32, false>{});
  if (shape.head_size <= 64) return with(TileChoice<64, true>{}, TileChoice<64, false>{});
  if (shape.head_size <= 96) return with(TileChoice<96, true>{}, TileChoice<96, false>{});
  return with(TileChoice<128, true>{}, TileChoice<128, false>{});
}

// More than 48 KiB of shared memory must be asked for.
template <typename Kernel>
void allow_shared_memory(Kernel* kernel, std::size_t bytes) {
  SNUG_CUDA_CALL(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

// Of tiles of so many rows, of the `length` rows of each example and head.
inline unsigned tile_blocks(const AttentionShape& shape, std::uint32_t length, std::uint32_t heads, int rows) {
  return blocks_for(length, static_cast<unsigned>(rows)) * shape.examples * heads;
}

}  // namespace snug::backends::cuda::launch
