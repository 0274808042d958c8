#include "base/process_memory.h"

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <malloc.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace snug {

ProcessMemory process_memory() {
  ProcessMemory memory;
  const std::array<std::pair<std::string_view, Bytes*>, 4> lines{{{"VmRSS:", &memory.resident},
                                                                  {"VmHWM:", &memory.peak_resident},
                                                                  {"VmSize:", &memory.mapped},
                                                                  {"VmPeak:", &memory.peak_mapped}}};
  std::ifstream status("/proc/self/status");
  std::size_t found = 0;
  for (std::string line; std::getline(status, line);) {
    for (const auto& [name, target] : lines) {
      if (!line.starts_with(name)) continue;
      *target = Bytes(std::stoll(line.substr(name.size())) * 1024);  // "VmRSS:	   12345 kB"
      ++found;
    }
  }
  SNUG_CHECK(found == lines.size(), "/proc/self/status does not say how much memory this process takes");
  return memory;
}

Bytes mapped_bytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return Bytes(0);
  std::array<char, 64> text{};
  const ssize_t length = read(file, text.data(), text.size() - 1);
  close(file);
  return Bytes(length > 0 ? std::strtoll(text.data(), nullptr, 10) * sysconf(_SC_PAGESIZE) : 0);  // its first word: pages
}

void give_back_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

bool machine_has_room(Bytes size) {
  constexpr std::string_view kAvailable = "MemAvailable:";
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with(kAvailable)) continue;
    const Bytes available(std::stoll(line.substr(kAvailable.size())) * 1024);
    return size * 5 < available * 4;
  }
  throw InternalError("/proc/meminfo does not say how much memory is free");
}

}  // namespace snug
