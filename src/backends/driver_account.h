// What this process holds on a GPU according to NVIDIA's driver: the context, code of kernels, libraries' own memory, graphs, and
// the arena. From NVML, the driver's management library that nvidia-smi uses too; it is loaded at run time, and nothing is
// linked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/device.h"

namespace snug::backends {

// The few functions of NVML that are needed, as nvml.h declares them.
struct Nvml {
  using Device = void*;
  struct Memory {
    unsigned long long total, free, used;
  };
  struct Process {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance, compute_instance;
  };
  static constexpr int kSuccess = 0;
  static constexpr int kInsufficientSize = 7;
  static constexpr unsigned long long kNotAvailable = ~0ULL;

  int (*find_device)(const char* pci_bus_id, Device* device) = nullptr;
  int (*memory)(Device device, Memory* memory) = nullptr;
  int (*processes)(Device device, unsigned int* count, Process* processes) = nullptr;
};

// The library of this machine, started; nothing where it is missing or does not start. It stays loaded.
std::optional<Nvml> load_nvml();

class DriverAccount {
 public:
  // Open it before the process has anything on the device: the fallback is counted from here.
  DriverAccount(std::optional<Nvml> nvml, const std::string& pci_bus_id, std::uint32_t pid);

  // What NVML counts for this process; where it does not list it (some containers, MPS), the growth of the whole device.
  std::optional<DriverMemory> read() const;
  std::optional<Bytes> of_process() const;
  std::optional<Bytes> device_growth() const;

 private:
  std::optional<Bytes> used_on_device() const;

  std::optional<Nvml> nvml_;
  Nvml::Device device_ = nullptr;
  std::uint32_t pid_;
  std::optional<Bytes> used_before_;
};

}  // namespace snug::backends
