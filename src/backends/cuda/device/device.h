// One NVIDIA GPU as a Device: its stream and its libraries' handles.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/device/handles.h"
#include "backends/cuda_plugin.h"
#include "backends/driver_account.h"
#include "ir/device.h"

namespace snug::backends::cuda {

class Convolutions;
class MatrixProducts;
class Staging;

class CudaDevice final : public Device {
 public:
  // UserError when the device does not exist or does not respond.
  explicit CudaDevice(const CudaOptions& options);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::unique_ptr<Arena> make_arena(MemorySpace space, Bytes size) override;
  std::unique_ptr<SectionRunner> make_runner(std::vector<std::unique_ptr<BoundKernel>> kernels) override;
  std::optional<DriverMemory> driver_memory() const override;

  // CUDA's current device is per thread; call this before any other CUDA call.
  void make_current() const;
  // All work goes here in order: kernels, copies to and from the arena.
  cudaStream_t stream() const { return stream_.get(); }
  void wait() const;

  const CudaOptions& options() const { return options_; }
  Staging& staging() { return *staging_; }
  // cuDNN and cuBLASLt, each initialized when the first node needs it: they take memory and seconds.
  Convolutions& convolutions();
  MatrixProducts& matrix_products();
  // Closes those that planning used but no bound kernel does.
  void close_unused_libraries();

 private:
  CudaOptions options_;
  std::optional<DriverAccount> account_;  // opened before there was a context
  Stream stream_;
  std::unique_ptr<Staging> staging_;
  std::shared_ptr<Convolutions> convolutions_;
  std::shared_ptr<MatrixProducts> matrix_products_;
};

// "NVIDIA H200, CUDA 12.4, cuDNN 90100": what measured times depend on.
std::string machine(int device);

// The device behind a query or an argument list of this backend's kernels.
inline CudaDevice& cuda_device(Device* device) { return static_cast<CudaDevice&>(*device); }

// Copies between pageable host memory and the device through a ring of pinned slots: a write returns as soon as its bytes are in
// a slot, so the host prepares the next microbatch while the GPU works on this one.
class Staging {
 public:
  Staging();

  void write(std::byte* device, std::span<const std::byte> source, cudaStream_t stream);
  // Waits for everything enqueued before it.
  void read(std::span<std::byte> target, const std::byte* device, cudaStream_t stream);

 private:
  static constexpr std::size_t kSlots = 8;
  static constexpr std::size_t kSlotBytes = std::size_t{512} << 10U;

  // The next slot; waits until the GPU has finished with it.
  std::byte* take_slot();

  PinnedMemory memory_;
  Event finished_[kSlots];
  std::size_t last_ = 0;  // the slot that was taken last
};

}  // namespace snug::backends::cuda
