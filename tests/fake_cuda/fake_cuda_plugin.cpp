// A plugin as libsnug_cuda.so is one, without a GPU: the CPU's kernels on a device whose driver claims to hold something. With it
// the command can be tested as it runs on a GPU: SNUG_CUDA_PLUGIN names it.
#include <cstdlib>
#include <string>

#include "backends/cpu/cpu.h"
#include "backends/cuda_plugin_abi.h"

namespace snug::backends {

namespace {

// What the driver holds beside the arenas. SNUG_FAKE_DRIVER says how it knows: process, growth, or nothing else.
constexpr Bytes kHeldBesideArenas{123'456'789};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(std::shared_ptr<Device> host) : host_(std::move(host)) {}

  std::unique_ptr<Arena> make_arena(MemorySpace space, Bytes size) override {
    if (space == MemorySpace::device) arena_ = size;
    return host_->make_arena(space, size);
  }
  std::unique_ptr<SectionRunner> make_runner(std::vector<std::unique_ptr<BoundKernel>> kernels) override {
    return host_->make_runner(std::move(kernels));
  }
  std::optional<DriverMemory> driver_memory() const override {
    const char* named = std::getenv("SNUG_FAKE_DRIVER");
    const std::string how = named == nullptr ? "" : named;
    if (how != "process" && how != "growth") return std::nullopt;
    return DriverMemory{
        .bytes = arena_ + kHeldBesideArenas,
        .counted = how == "process" ? DriverMemory::Counted::for_process : DriverMemory::Counted::as_device_growth};
  }

 private:
  std::shared_ptr<Device> host_;
  Bytes arena_;
};

}  // namespace

}  // namespace snug::backends

extern "C" {

const char* snug_cuda_fingerprint() {
  static const std::string fingerprint = snug::backends::cuda_plugin_fingerprint();
  return fingerprint.c_str();
}

void snug_cuda_open(const snug::backends::CudaOptions& /*options*/, snug::Backend& result) {
  result = snug::backends::cpu_backend(1);
  result.name = "cuda";
  result.device = std::make_shared<snug::backends::FakeDevice>(result.device);
}

}  // extern "C"
