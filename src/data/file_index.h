// A list of file names and labels, kept on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/file.h"

namespace snug::data {

class FileIndex {
 public:
  struct Entry {
    std::string name;
    std::int32_t label = 0;
  };

  FileIndex();

  void append(std::string_view name, std::int32_t label);
  // After the last append; frees the buffers. Only then may entries be read.
  void finish();

  std::int64_t size() const { return size_; }
  // From any thread.
  Entry read(std::int64_t index) const;

 private:
  struct Record {
    std::uint64_t name_offset = 0;
    std::uint32_t name_bytes = 0;
    std::int32_t label = 0;
  };

  File names_;    // unnamed temporary files: the names one after the other,
  File records_;  // ... and a Record each
  std::uint64_t names_bytes_ = 0;
  std::int64_t size_ = 0;
  std::string names_buffer_;
  std::string records_buffer_;
};

}  // namespace snug::data
