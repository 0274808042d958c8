// An image's bytes in memory; the fuzzers read from it too.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/image.h"

namespace snug::data {

class MemorySource : public ByteSource {
 public:
  // Reading beyond `fails_at` is refused as by a broken disk.
  explicit MemorySource(std::span<const std::byte> bytes, std::size_t fails_at = SIZE_MAX) : bytes_(bytes), fails_at_(fails_at) {}

  std::int64_t read(std::span<std::byte> bytes) noexcept override {
    const std::size_t count = std::min(bytes.size(), bytes_.size() - at_);
    if (at_ + count > fails_at_) {
      errno = EIO;
      return -1;
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, bytes.begin());
    at_ += count;
    return static_cast<std::int64_t>(count);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t fails_at_;
  std::size_t at_ = 0;
};

}  // namespace snug::data
