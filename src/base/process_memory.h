// What this process takes, according to the operating system.
#pragma once

#include "base/bytes.h"

namespace snug {

struct ProcessMemory {
  Bytes resident;       // now
  Bytes peak_resident;  // the most so far
  Bytes mapped;         // address space now: what RLIMIT_AS limits
  Bytes peak_mapped;
};

// InternalError where there is no /proc.
ProcessMemory process_memory();

// ProcessMemory::mapped to the page, found without allocating: for use after an allocation failed.
// 0 where there is no /proc.
Bytes mapped_bytes();

// Returns the heap's free memory to the system, if the allocator can: after a search, which takes more than the training that
// follows.
void give_back_free_memory();

// Whether the machine has that much memory available without swapping, with some left for others.
bool machine_has_room(Bytes size);

}  // namespace snug
