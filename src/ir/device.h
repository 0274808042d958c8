// Where an arena lies and sections run. A backend brings its device; the runtime knows only this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "ir/program.h"

namespace snug {

// A kernel bound to its operands: everything that can be made once (library handles, argument lists) is made on construction.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  virtual void run() = 0;  // never allocates; on a GPU it only enqueues
};

// The one allocation in a memory space that training uses: exactly as many bytes as the plan says.
class Arena {
 public:
  virtual ~Arena() = default;

  Bytes size() const { return size_; }
  // Where it lies, for binding kernels; readable by the host only where `host_accessible`.
  std::byte* data() const { return data_; }
  virtual bool host_accessible() const = 0;

  // Copies that wait for everything enqueued before them.
  virtual void write(Bytes offset, std::span<const std::byte> source) = 0;
  virtual void read(Bytes offset, std::span<std::byte> target) const = 0;

  // The high-water mark is measured without knowledge of the plan: fill with a pattern, run, look for the last byte that changed.
  // A second run with the inverted pattern finds bytes that happened to be written with the first pattern's value.
  enum class Canary : std::uint8_t { plain = 0xA5, inverted = 0x5A };
  virtual void fill_from(Bytes begin, Canary canary) = 0;
  // One past the last byte that differs from the canary that [begin, size) was filled with; `begin` when none does.
  virtual Bytes high_water_mark(Bytes begin, Canary canary) const = 0;

  // False when something wrote beside the arena.
  virtual bool margins_untouched() const = 0;

 protected:
  Bytes size_;
  std::byte* data_ = nullptr;
};

// A section's bound kernels in order; runs again and again.
class SectionRunner {
 public:
  virtual ~SectionRunner() = default;
  virtual void run() = 0;
  virtual void run_node(std::size_t node) = 0;  // one alone, finished when it returns: for checking mode and profiles
};

// What a device's driver holds for this process on the device.
struct DriverMemory {
  enum class Counted : std::uint8_t {
    for_process,
    // The driver does not say which part is this process's: the growth of the whole device's use since the process opened it.
    // Wrong by what other processes allocated or freed meanwhile.
    as_device_growth,
  };
  Bytes bytes;
  Counted counted;
};

class Device {
 public:
  virtual ~Device() = default;
  // DoesNotFit, naming the memory, when that much is not available. A host arena is `host_accessible`, and kernels that take
  // operands there can read it.
  virtual std::unique_ptr<Arena> make_arena(MemorySpace space, Bytes size) = 0;
  virtual std::unique_ptr<SectionRunner> make_runner(std::vector<std::unique_ptr<BoundKernel>> kernels) = 0;
  // The arena included. Nothing on a device that has no memory of its own, or where it is not known.
  virtual std::optional<DriverMemory> driver_memory() const { return std::nullopt; }
};

}  // namespace snug
