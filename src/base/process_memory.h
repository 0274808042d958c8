// What the operating system says this process takes.
#pragma once

#include "base/bytes.h"

namespace snug {

struct ProcessMemory {
  Bytes resident;       // now
  Bytes peak_resident;  // the most so far
};

// InternalError where there is no /proc.
ProcessMemory process_memory();

}  // namespace snug
