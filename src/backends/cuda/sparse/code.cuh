// Shared device code of the sparse store: packed columns, and ranks within a block of threads.
#pragma once

#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sparse/store.h"

namespace snug::backends::cuda {

// Column k of a packed list. The word after the last one may be read too.
__device__ inline std::uint32_t column_at(const std::uint32_t* columns, int bits, std::uint32_t k) {
  const std::uint64_t bit = std::uint64_t{k} * static_cast<unsigned>(bits);
  const std::uint32_t* words = columns + bit / 32;
  return __funnelshift_r(words[0], words[1], static_cast<unsigned>(bit % 32)) & ((1U << static_cast<unsigned>(bits)) - 1U);
}

// Into a list of zeros; neighbors may share a word.
__device__ inline void put_column(std::uint32_t* columns, int bits, std::uint32_t k, std::uint32_t column) {
  const std::uint64_t bit = std::uint64_t{k} * static_cast<unsigned>(bits);
  const auto shift = static_cast<unsigned>(bit % 32);
  atomicOr(columns + bit / 32, column << shift);
  if (shift + static_cast<unsigned>(bits) > 32) atomicOr(columns + bit / 32 + 1, column >> (32 - shift));
}

// A block that walks a list in steps of its size.
inline constexpr unsigned kWalkers = 1024;

// How many threads before this one have `flag`, and in `total` how many have it in all. `counts`: one number per warp, in shared
// memory; reusable after the next barrier.
__device__ inline unsigned rank_in_block(bool flag, unsigned* counts, unsigned& total) {
  const unsigned votes = __ballot_sync(~0U, flag);
  const unsigned warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) counts[warp] = static_cast<unsigned>(__popc(votes));
  __syncthreads();
  unsigned rank = static_cast<unsigned>(__popc(votes & ((1U << (threadIdx.x % 32)) - 1U)));
  total = 0;
  for (unsigned w = 0; w < kWalkers / 32; ++w) {
    rank += w < warp ? counts[w] : 0;
    total += counts[w];
  }
  return rank;
}

}  // namespace snug::backends::cuda
