#include "backends/cuda/device/device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unistd.h>

#include "backends/cuda/convolution/convolutions.h"
#include "backends/cuda/device/runner.h"
#include "backends/cuda/linear/matrix_products.h"
#include "base/error.h"

namespace snug::backends::cuda {

namespace {

constexpr std::size_t kStackBytes = 64;  // the largest frame of our own kernels has 56
constexpr std::size_t kUnusedBytes = 64 << 10;

// Does not create a context.
void require_device(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    throw_user_error("no CUDA device was found: {}",
                     status == cudaSuccess ? "the driver lists none" : cudaGetErrorString(status));
  }
  if (device < 0 || device >= count)
    throw_user_error("there is no CUDA device {}; the last of {} is {}", device, count, count - 1);
}

DriverAccount open_account(int device) {
  std::array<char, 32> bus_id{};
  SNUG_CUDA_CALL(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device));
  return {load_nvml(), bus_id.data(), static_cast<std::uint32_t>(getpid())};
}

// A context reserves memory that neither our kernels nor the libraries' use: a stack of 1 KiB for every thread that the GPU can
// hold (264 MiB on an H200), a heap for malloc() and a buffer for printf() in kernels. A kernel that needs a larger stack, of a
// size known to the compiler, still gets it at its first launch.
void keep_context_small() {
  for (const auto& [limit, bytes] : {std::pair(cudaLimitStackSize, kStackBytes), std::pair(cudaLimitMallocHeapSize, kUnusedBytes),
                                     std::pair(cudaLimitPrintfFifoSize, kUnusedBytes)}) {
    // The driver rounds up to what it supports. If it cannot set the limit, training still works.
    if (cudaDeviceSetLimit(limit, bytes) != cudaSuccess) cudaGetLastError();
  }
}

void start_device(int device) {
  const cudaError_t started = cudaSetDevice(device);
  if (started != cudaSuccess) {
    cudaGetLastError();
    throw_user_error("CUDA device {} does not start: {}", device, cudaGetErrorString(started));
  }
  keep_context_small();
}

}  // namespace

std::string machine(int device) {
  cudaDeviceProp properties{};
  SNUG_CUDA_CALL(cudaGetDeviceProperties(&properties, device));
  int runtime = 0;
  SNUG_CUDA_CALL(cudaRuntimeGetVersion(&runtime));
  return fmt::format("{}, CUDA {}.{}, cuDNN {}", properties.name, runtime / 1000, runtime % 1000 / 10, cudnnGetVersion());
}

CudaDevice::CudaDevice(const CudaOptions& options) : options_(options) {
  require_device(options.device);
  account_.emplace(open_account(options.device));
  start_device(options.device);
  stream_ = make_stream();
  staging_ = std::make_unique<Staging>();
}

CudaDevice::~CudaDevice() = default;

void CudaDevice::make_current() const { SNUG_CUDA_CALL(cudaSetDevice(options_.device)); }

void CudaDevice::wait() const { SNUG_CUDA_CALL(cudaStreamSynchronize(stream())); }

std::optional<DriverMemory> CudaDevice::driver_memory() const { return account_->read(); }

std::unique_ptr<Arena> CudaDevice::make_arena(MemorySpace space, Bytes size) { return make_cuda_arena(*this, space, size); }

std::unique_ptr<SectionRunner> CudaDevice::make_runner(std::vector<std::unique_ptr<BoundKernel>> kernels) {
  return make_cuda_runner(*this, std::move(kernels));
}

Convolutions& CudaDevice::convolutions() {
  make_current();
  if (!convolutions_) convolutions_ = std::make_shared<Convolutions>(*this);
  return *convolutions_;
}

MatrixProducts& CudaDevice::matrix_products() {
  make_current();
  if (!matrix_products_) matrix_products_ = std::make_shared<MatrixProducts>(*this);
  return *matrix_products_;
}

void CudaDevice::close_unused_libraries() {
  if (convolutions_.use_count() == 1) convolutions_.reset();
  if (matrix_products_.use_count() == 1) matrix_products_.reset();
}

Staging::Staging() : memory_(make_pinned_memory(kSlots * kSlotBytes)) {
  for (Event& event : finished_) event = make_event();
}

std::byte* Staging::take_slot() {
  last_ = (last_ + 1) % kSlots;
  SNUG_CUDA_CALL(cudaEventSynchronize(finished_[last_].get()));  // returns at once when nothing was recorded
  return static_cast<std::byte*>(memory_.get()) + last_ * kSlotBytes;
}

void Staging::write(std::byte* device, std::span<const std::byte> source, cudaStream_t stream) {
  while (!source.empty()) {
    const std::size_t bytes = std::min(source.size(), kSlotBytes);
    std::byte* slot = take_slot();
    std::memcpy(slot, source.data(), bytes);
    SNUG_CUDA_CALL(cudaMemcpyAsync(device, slot, bytes, cudaMemcpyHostToDevice, stream));
    SNUG_CUDA_CALL(cudaEventRecord(finished_[last_].get(), stream));
    source = source.subspan(bytes);
    device += bytes;
  }
}

void Staging::read(std::span<std::byte> target, const std::byte* device, cudaStream_t stream) {
  while (!target.empty()) {
    const std::size_t bytes = std::min(target.size(), kSlotBytes);
    std::byte* slot = take_slot();
    SNUG_CUDA_CALL(cudaMemcpyAsync(slot, device, bytes, cudaMemcpyDeviceToHost, stream));
    SNUG_CUDA_CALL(cudaStreamSynchronize(stream));
    std::memcpy(target.data(), slot, bytes);
    target = target.subspan(bytes);
    device += bytes;
  }
}

}  // namespace snug::backends::cuda
