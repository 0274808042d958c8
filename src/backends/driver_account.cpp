#include "backends/driver_account.h"

#include <algorithm>
#include <dlfcn.h>
#include <vector>

namespace snug::backends {

namespace {

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

Bytes to_bytes(unsigned long long count) { return Bytes(static_cast<std::int64_t>(count)); }

}  // namespace

std::optional<Nvml> load_nvml() {
  // Never closed, and NVML never shut down: both end with the process.
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  const auto start = symbol<int (*)()>(library, "nvmlInit_v2");
  const Nvml nvml{
      .find_device = symbol<decltype(Nvml::find_device)>(library, "nvmlDeviceGetHandleByPciBusId_v2"),
      .memory = symbol<decltype(Nvml::memory)>(library, "nvmlDeviceGetMemoryInfo"),
      .processes = symbol<decltype(Nvml::processes)>(library, "nvmlDeviceGetComputeRunningProcesses_v3"),
  };
  if (start == nullptr || nvml.find_device == nullptr || nvml.memory == nullptr || nvml.processes == nullptr) return std::nullopt;
  if (start() != Nvml::kSuccess) return std::nullopt;
  return nvml;
}

DriverAccount::DriverAccount(std::optional<Nvml> nvml, const std::string& pci_bus_id, std::uint32_t pid)
    : nvml_(nvml), pid_(pid) {
  if (nvml_ && nvml_->find_device(pci_bus_id.c_str(), &device_) != Nvml::kSuccess) nvml_.reset();
  used_before_ = used_on_device();
}

std::optional<DriverMemory> DriverAccount::read() const {
  if (const auto bytes = of_process()) return DriverMemory{.bytes = *bytes, .counted = DriverMemory::Counted::for_process};
  if (const auto bytes = device_growth())
    return DriverMemory{.bytes = *bytes, .counted = DriverMemory::Counted::as_device_growth};
  return std::nullopt;
}

std::optional<Bytes> DriverAccount::of_process() const {
  if (!nvml_) return std::nullopt;
  std::vector<Nvml::Process> processes(16);
  unsigned int count = 0;
  int status = Nvml::kInsufficientSize;
  // Processes may start between two calls; a few tries are enough.
  for (int tries = 0; status == Nvml::kInsufficientSize && tries < 4; ++tries) {
    if (tries > 0) processes.resize(2 * processes.size() + count);
    count = static_cast<unsigned int>(processes.size());
    status = nvml_->processes(device_, &count, processes.data());
  }
  if (status != Nvml::kSuccess) return std::nullopt;
  processes.resize(count);
  // A process that uses several instances of a partitioned GPU has an entry for each.
  std::optional<Bytes> sum;
  for (const Nvml::Process& process : processes) {
    if (process.pid != pid_ || process.used_bytes == Nvml::kNotAvailable) continue;
    sum = sum.value_or(Bytes(0)) + to_bytes(process.used_bytes);
  }
  return sum;
}

std::optional<Bytes> DriverAccount::device_growth() const {
  const std::optional<Bytes> now = used_on_device();
  if (!now || !used_before_) return std::nullopt;
  return std::max(*now - *used_before_, Bytes(0));
}

std::optional<Bytes> DriverAccount::used_on_device() const {
  Nvml::Memory memory{};
  if (!nvml_ || nvml_->memory(device_, &memory) != Nvml::kSuccess) return std::nullopt;
  return to_bytes(memory.used);
}

}  // namespace snug::backends
