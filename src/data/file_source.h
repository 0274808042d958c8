// A file as a source of an image's bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "data/file.h"
#include "data/images/image.h"

namespace snug::data {

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : file_(open_regular_file(path)) {}

  std::int64_t read(std::span<std::byte> bytes) noexcept override;

 private:
  File file_;
  std::int64_t offset_ = 0;  // of the file, after the buffer
  std::array<std::byte, 16'384> buffer_;
  std::size_t filled_ = 0;
  std::size_t at_ = 0;
};

}  // namespace snug::data
