// A plan's memory: one arena per memory space that it uses.
#pragma once

#include <array>
#include <memory>

#include "ir/device.h"
#include "plan/plan.h"

namespace snug {

class Arenas {
 public:
  // The device's always exists, the host's only if something lies in it. DoesNotFit when there is not enough memory.
  Arenas(const Plan& plan, Device& device);

  bool has(MemorySpace space) const { return arena(space) != nullptr; }
  // InternalError if the plan does not use the space.
  Arena& in(MemorySpace space) const;

  std::byte* address(MemorySpace space, Bytes offset) const { return in(space).data() + offset.count(); }

 private:
  const std::unique_ptr<Arena>& arena(MemorySpace space) const { return arenas_[static_cast<std::size_t>(space)]; }

  std::array<std::unique_ptr<Arena>, kMemorySpaces.size()> arenas_;
};

}  // namespace snug
