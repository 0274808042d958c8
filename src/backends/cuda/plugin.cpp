// The plugin's entry: what load_cuda_backend() finds.

#include <array>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda_plugin_abi.h"
#include "ir/family.h"

namespace snug::backends {

namespace cuda {
namespace {

constexpr FamilyMember<KernelDef> kFamilies[] = {
#define SNUG_FAMILY(...) __VA_ARGS__,
#include "backends/cuda/families.inc"
#undef SNUG_FAMILY
};

}  // namespace
}  // namespace cuda

namespace {

Backend cuda_backend(const CudaOptions& options) {
  static constexpr std::array kKernels = addresses_of(cuda::kFamilies);
  return {.name = "cuda",
          .kernels = {kKernels.begin(), kKernels.end()},
          .threads = 1,
          .device = std::make_shared<cuda::CudaDevice>(options),
          .machine = cuda::machine(options.device)};
}

}  // namespace

}  // namespace snug::backends

extern "C" {

const char* snug_cuda_fingerprint() {
  static const std::string fingerprint = snug::backends::cuda_plugin_fingerprint();
  return fingerprint.c_str();
}

void snug_cuda_open(const snug::backends::CudaOptions& options, snug::Backend& result) {
  result = snug::backends::cuda_backend(options);
}

}  // extern "C"

// Both have the types that the loader expects.
static_assert(std::is_same_v<decltype(&snug_cuda_fingerprint), snug::backends::CudaFingerprintFunction>);
static_assert(std::is_same_v<decltype(&snug_cuda_open), snug::backends::CudaOpenFunction>);
