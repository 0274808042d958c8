#include "data/file_source.h"

#include <algorithm>

namespace snug::data {

std::int64_t FileSource::read(std::span<std::byte> bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    if (at_ == filled_) {
      const std::int64_t count = read_some_at(file_, offset_, buffer_);
      if (count < 0) return -1;
      if (count == 0) break;
      offset_ += count;
      filled_ = static_cast<std::size_t>(count);
      at_ = 0;
    }
    const std::size_t count = std::min(bytes.size() - done, filled_ - at_);
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(at_), count, bytes.begin() + static_cast<std::ptrdiff_t>(done));
    at_ += count;
    done += count;
  }
  return static_cast<std::int64_t>(done);
}

}  // namespace snug::data
