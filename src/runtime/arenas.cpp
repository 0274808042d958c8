#include "runtime/arenas.h"

#include "base/error.h"

namespace snug {

Arenas::Arenas(const Plan& plan, Device& device) {
  for (const MemorySpace space : kMemorySpaces) {
    const Bytes size = plan.in(space).planned_peak_bytes;
    if (space == MemorySpace::device || size > Bytes(0))
      arenas_[static_cast<std::size_t>(space)] = device.make_arena(space, size);
  }
}

Arena& Arenas::in(MemorySpace space) const {
  SNUG_CHECK(has(space), "the plan puts nothing into {} memory", name_of(space));
  return *arena(space);
}

}  // namespace snug
