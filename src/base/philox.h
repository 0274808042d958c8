// Philox4x32-10: a counter-based random generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Any
// number of the stream follows from its counter alone, so a dropout mask or an augmentation is never stored: it is recomputed, on
// any device, in any order. The host and the CUDA kernels share this header.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SNUG_HOST_DEVICE __host__ __device__
#else
#define SNUG_HOST_DEVICE
#endif

namespace snug {

struct PhiloxBlock {
  std::uint32_t word[4];
};

// Four random words for a 128-bit counter under a 64-bit key.
SNUG_HOST_DEVICE constexpr PhiloxBlock philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  std::uint32_t c0 = static_cast<std::uint32_t>(counter_low);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter_low >> 32U);
  std::uint32_t c2 = static_cast<std::uint32_t>(counter_high);
  std::uint32_t c3 = static_cast<std::uint32_t>(counter_high >> 32U);
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * c0;
    const std::uint64_t product1 = kMultiplier1 * c2;
    const std::uint32_t next0 = static_cast<std::uint32_t>(product1 >> 32U) ^ c1 ^ k0;
    const std::uint32_t next2 = static_cast<std::uint32_t>(product0 >> 32U) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(product1);
    c3 = static_cast<std::uint32_t>(product0);
    c0 = next0;
    c2 = next2;
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

// [0, 1) with 32 bits.
SNUG_HOST_DEVICE constexpr double uniform_unit(std::uint32_t word) { return word * (1.0 / 4294967296.0); }

// 0 <= result < bound, without division (Lemire's multiply-shift; its bias is below 2^-20 for the small bounds used here).
SNUG_HOST_DEVICE constexpr std::uint32_t uniform_below(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * bound) >> 32U);
}

}  // namespace snug
