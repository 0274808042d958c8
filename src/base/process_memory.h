// What the operating system says this process takes.
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

// ProcessMemory::mapped to the page, found without allocating: for whoever has just been refused memory. 0 where there is no
// /proc.
Bytes mapped_bytes();

// What the heap has free goes back to the system, where its allocator knows how: after a search, which takes more than the
// training that follows.
void give_back_free_memory();

// Whether the machine could give a program that much now without swapping, and keep some for others.
bool machine_has_room(Bytes size);

}  // namespace snug
