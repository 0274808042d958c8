// Sorts more names than fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"

namespace snug::data {

// Names are collected up to `run_bytes`, sorted and written to an unnamed temporary file; runs are merged kFanIn at a time.
// Resident are one run, or kFanIn buffers of kReadBytes, and 16 bytes per run written: 64 KiB for a gigabyte of names.
class ExternalSort {
 public:
  static constexpr std::size_t kFanIn = 16;
  static constexpr std::size_t kReadBytes = 8192;
  static constexpr std::size_t kLongestName = 4096;

  explicit ExternalSort(std::size_t run_bytes = 262'144) : run_bytes_(run_bytes) {}

  void add(std::string_view name);
  std::int64_t size() const { return count_; }
  // All names in the order of their bytes; the sorter is empty then.
  void drain(const std::function<void(std::string_view)>& take);

 private:
  struct Run {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  class RunReader;
  class RunWriter;

  void spill();
  void merge(std::size_t first_run, std::size_t runs, const std::function<void(std::string_view)>& take);

  std::size_t run_bytes_;
  std::int64_t count_ = 0;
  std::string text_;                     // the names collected, one after the other
  std::vector<std::string_view> names_;  // ... in text_, which never grows beyond its reserve
  std::size_t gathered_bytes_ = 0;
  File file_;
  std::int64_t file_bytes_ = 0;
  std::vector<Run> runs_;
};

}  // namespace snug::data
