#include "base/touched_pages.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>

namespace snug {

namespace {

constexpr std::uint64_t kIsPresent = std::uint64_t{1} << 63U;  // in an entry of /proc/self/pagemap

}  // namespace

TouchedPages TouchedPages::now() {
  TouchedPages pages;
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) return pages;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0, inode = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %llu", &begin, &end, &inode) != 3 || inode == 0) continue;
    Mapping mapping{.begin = begin / page, .is_touched = std::vector<bool>((end - begin) / page)};
    std::array<std::uint64_t, 512> entries{};
    for (std::size_t first = 0; first < mapping.is_touched.size(); first += entries.size()) {
      const std::size_t count = std::min(entries.size(), mapping.is_touched.size() - first);
      const auto offset = static_cast<off_t>((mapping.begin + first) * sizeof(std::uint64_t));
      const ssize_t got = pread(pagemap, entries.data(), count * sizeof(std::uint64_t), offset);
      if (got != static_cast<ssize_t>(count * sizeof(std::uint64_t))) break;
      for (std::size_t i = 0; i < count; ++i) mapping.is_touched[first + i] = (entries[i] & kIsPresent) != 0;
    }
    pages.mappings_.push_back(std::move(mapping));
  }
  close(pagemap);
  return pages;
}

Bytes TouchedPages::not_in(const TouchedPages& other) const {
  const auto touched = [&](std::uint64_t number) {
    return std::any_of(other.mappings_.begin(), other.mappings_.end(), [&](const Mapping& mapping) {
      return number >= mapping.begin && number < mapping.begin + mapping.is_touched.size() &&
             mapping.is_touched[number - mapping.begin];
    });
  };
  std::int64_t count = 0;
  for (const Mapping& mapping : mappings_) {
    for (std::size_t i = 0; i < mapping.is_touched.size(); ++i) {
      if (mapping.is_touched[i] && !touched(mapping.begin + i)) ++count;
    }
  }
  return Bytes(count * sysconf(_SC_PAGESIZE));
}

}  // namespace snug
