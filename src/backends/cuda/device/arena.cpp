#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cuda/device/canary.h"
#include "backends/cuda/device/runner.h"
#include "base/error.h"

namespace snug::backends::cuda {

namespace {

constexpr std::byte kMargin{0xC3};
constexpr std::size_t kScratchBytes = 256;  // cudaMalloc aligns at least to this
constexpr std::size_t kFrontBytes = 4096;   // scratch included
constexpr std::size_t kBackBytes = 4096;
static_assert(kFrontBytes % static_cast<std::size_t>(kAlignment.count()) == 0 && kScratchBytes < kFrontBytes);

DeviceMemory allocate(Bytes size) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, kFrontBytes + static_cast<std::size_t>(size.count()) + kBackBytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    SNUG_CUDA_CALL(cudaMemGetInfo(&free_bytes, &total_bytes));
    throw DoesNotFit(fmt::format("the GPU refuses an arena of {} bytes: {} of its {} bytes are free (cudaMalloc: {})",
                                 size.count(), free_bytes, total_bytes, cudaGetErrorString(status)));
  }
  check(status, "cudaMalloc");
  return DeviceMemory(memory);
}

class CudaArena final : public Arena {
 public:
  CudaArena(CudaDevice& device, Bytes size) : device_(device), memory_(allocate(size)) {
    size_ = size;
    data_ = static_cast<std::byte*>(memory_.get()) + kFrontBytes;
    SNUG_CUDA_CALL(cudaMemsetAsync(front_margin(), static_cast<int>(kMargin), kFrontBytes - kScratchBytes, device.stream()));
    SNUG_CUDA_CALL(cudaMemsetAsync(back_margin(), static_cast<int>(kMargin), kBackBytes, device.stream()));
  }
  ~CudaArena() override {
    // Kernels may still be running in it.
    static_cast<void>(cudaStreamSynchronize(device_.stream()));
  }
  CudaArena(const CudaArena&) = delete;
  CudaArena& operator=(const CudaArena&) = delete;

  bool host_accessible() const override { return false; }

  void write(Bytes offset, std::span<const std::byte> source) override {
    device_.make_current();
    device_.staging().write(data_ + offset.count(), source, device_.stream());
  }

  void read(Bytes offset, std::span<std::byte> target) const override {
    device_.make_current();
    device_.staging().read(target, data_ + offset.count(), device_.stream());
  }

  void fill_from(Bytes begin, Canary canary) override {
    device_.make_current();
    const auto bytes = static_cast<std::size_t>((size_ - begin).count());
    SNUG_CUDA_CALL(cudaMemsetAsync(data_ + begin.count(), static_cast<int>(canary), bytes, device_.stream()));
  }

  Bytes high_water_mark(Bytes begin, Canary canary) const override {
    device_.make_current();
    SNUG_CHECK(begin.count() % 16 == 0, "a scan that begins at byte {} would read words askew", begin.count());
    auto* result = static_cast<unsigned long long*>(memory_.get());
    SNUG_CUDA_CALL(cudaMemsetAsync(result, 0, sizeof *result, device_.stream()));
    launch::find_last_changed(device_.stream(), data_ + begin.count(), static_cast<std::uint64_t>((size_ - begin).count()),
                              static_cast<std::uint8_t>(canary), result);
    unsigned long long last = 0;
    device_.staging().read(std::as_writable_bytes(std::span(&last, 1)), static_cast<const std::byte*>(memory_.get()),
                           device_.stream());
    return begin + Bytes(static_cast<std::int64_t>(last));
  }

  bool margins_untouched() const override {
    device_.make_current();
    return all_margin(front_margin(), kFrontBytes - kScratchBytes) && all_margin(back_margin(), kBackBytes);
  }

 private:
  std::byte* front_margin() const { return static_cast<std::byte*>(memory_.get()) + kScratchBytes; }
  std::byte* back_margin() const { return data_ + size_.count(); }

  bool all_margin(const std::byte* device_bytes, std::size_t count) const {
    std::array<std::byte, std::max(kFrontBytes, kBackBytes)> copy{};
    const std::span<std::byte> bytes(copy.data(), count);
    device_.staging().read(bytes, device_bytes, device_.stream());
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == kMargin; });
  }

  CudaDevice& device_;
  DeviceMemory memory_;
};

// Page-locked: the GPU copies to and from it by DMA, also in a replayed graph.
PinnedMemory allocate_pinned(Bytes size) {
  void* memory = nullptr;
  const std::size_t bytes = kFrontBytes + static_cast<std::size_t>(size.count()) + kBackBytes;
  const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw DoesNotFit(fmt::format("the driver refuses an arena of {} bytes in the host's page-locked memory (cudaHostAlloc: {})",
                                 size.count(), cudaGetErrorString(status)));
  }
  check(status, "cudaHostAlloc");
  return PinnedMemory(memory);
}

// The host accesses it directly, after waiting for all enqueued work.
class PinnedArena final : public Arena {
 public:
  PinnedArena(CudaDevice& device, Bytes size) : device_(device), memory_(allocate_pinned(size)) {
    size_ = size;
    data_ = static_cast<std::byte*>(memory_.get()) + kFrontBytes;
    std::ranges::fill(front_margin(), kMargin);
    std::ranges::fill(back_margin(), kMargin);
  }
  ~PinnedArena() override {
    // Copies may still be running.
    static_cast<void>(cudaStreamSynchronize(device_.stream()));
  }
  PinnedArena(const PinnedArena&) = delete;
  PinnedArena& operator=(const PinnedArena&) = delete;

  bool host_accessible() const override { return true; }

  void write(Bytes offset, std::span<const std::byte> source) override {
    wait();
    std::ranges::copy(source, data_ + offset.count());
  }

  void read(Bytes offset, std::span<std::byte> target) const override {
    wait();
    std::copy_n(data_ + offset.count(), target.size(), target.begin());
  }

  void fill_from(Bytes begin, Canary canary) override {
    wait();
    std::memset(data_ + begin.count(), static_cast<int>(canary), static_cast<std::size_t>((size_ - begin).count()));
  }

  Bytes high_water_mark(Bytes begin, Canary canary) const override {
    wait();
    std::int64_t end = size_.count();
    while (end > begin.count() && data_[end - 1] == static_cast<std::byte>(canary)) --end;
    return Bytes(end);
  }

  bool margins_untouched() const override {
    wait();
    const auto is_margin = [](std::byte b) { return b == kMargin; };
    return std::ranges::all_of(front_margin(), is_margin) && std::ranges::all_of(back_margin(), is_margin);
  }

 private:
  void wait() const {
    device_.make_current();
    device_.wait();
  }
  std::span<std::byte> front_margin() const { return {static_cast<std::byte*>(memory_.get()), kFrontBytes}; }
  std::span<std::byte> back_margin() const { return {data_ + size_.count(), kBackBytes}; }

  CudaDevice& device_;
  PinnedMemory memory_;
};

}  // namespace

std::unique_ptr<Arena> make_cuda_arena(CudaDevice& device, MemorySpace space, Bytes size) {
  device.make_current();
  if (space == MemorySpace::host) return std::make_unique<PinnedArena>(device, size);
  return std::make_unique<CudaArena>(device, size);
}

}  // namespace snug::backends::cuda
