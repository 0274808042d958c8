#include "base/process_memory.h"

#include <fstream>
#include <string>

#include "base/error.h"

namespace snug {

ProcessMemory process_memory() {
  std::ifstream status("/proc/self/status");
  ProcessMemory memory;
  int found = 0;
  for (std::string line; std::getline(status, line);) {
    const bool now = line.starts_with("VmRSS:");
    if (!now && !line.starts_with("VmHWM:")) continue;
    const Bytes size(std::stoll(line.substr(6)) * 1024);  // "VmRSS:	   12345 kB"
    (now ? memory.resident : memory.peak_resident) = size;
    ++found;
  }
  SNUG_CHECK(found == 2, "/proc/self/status does not say how much memory this process takes");
  return memory;
}

}  // namespace snug
