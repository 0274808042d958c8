#include "backends/cuda/device/canary.h"
#include "backends/cuda/device/check.h"

namespace snug::backends::cuda::launch {

namespace {

constexpr int kThreads = 256;
constexpr std::uint64_t kWord = 16;

__global__ void find_last_changed_kernel(const std::uint8_t* data, std::uint64_t bytes, std::uint8_t canary,
                                         unsigned long long* result) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads * kWord;
  const unsigned pattern = canary * 0x01010101U;
  std::uint64_t last = 0;  // one past; later words replace earlier ones
  for (std::uint64_t at = (std::uint64_t{blockIdx.x} * kThreads + threadIdx.x) * kWord; at < bytes; at += stride) {
    const std::uint64_t end = at + kWord < bytes ? at + kWord : bytes;
    if (end - at == kWord) {
      const uint4 word = *reinterpret_cast<const uint4*>(data + at);
      if (word.x == pattern && word.y == pattern && word.z == pattern && word.w == pattern) continue;
    }
    for (std::uint64_t i = at; i < end; ++i) {
      if (data[i] != canary) last = i + 1;
    }
  }
  // A maximum does not depend on the order in which it is taken.
  if (last != 0) atomicMax(result, static_cast<unsigned long long>(last));
}

}  // namespace

void find_last_changed(cudaStream_t stream, const std::byte* data, std::uint64_t bytes, std::uint8_t canary,
                       unsigned long long* result) {
  if (bytes == 0) return;
  const std::uint64_t blocks = (bytes + kThreads * kWord - 1) / (kThreads * kWord);
  const auto grid = static_cast<unsigned>(blocks < 2048 ? blocks : 2048);
  find_last_changed_kernel<<<grid, kThreads, 0, stream>>>(reinterpret_cast<const std::uint8_t*>(data), bytes, canary, result);
  check_launch("find_last_changed");
}

}  // namespace snug::backends::cuda::launch
