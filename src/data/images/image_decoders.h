// The two decoders behind decode_image(). Both libraries report errors by longjmp out of their C code; it becomes an exception at
// the call that it came from, with no C++ object in between.
#pragma once

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "data/images/image.h"

namespace snug::data {

// A source that gives the first bytes of an image, already read to tell its kind, and then the rest.
class Prefixed {
 public:
  static constexpr std::size_t kPrefix = 8;

  explicit Prefixed(ByteSource& source) : source_(source) {
    const std::int64_t count = source.read(prefix_);
    prefix_bytes_ = count < 0 ? 0 : static_cast<std::size_t>(count);
    error_ = count < 0 ? errno : 0;
  }

  std::span<const std::byte> prefix() const { return std::span(prefix_).first(prefix_bytes_); }
  // The errno of a failed read; 0 when there was none.
  int error() const { return error_; }

  // How many bytes were read; after an error as if the source ended here, and error() says why.
  std::size_t read(std::span<std::byte> bytes) noexcept {
    const std::size_t from_prefix = std::min(bytes.size(), prefix_bytes_ - at_);
    std::memcpy(bytes.data(), prefix_.data() + at_, from_prefix);
    at_ += from_prefix;
    const auto rest = bytes.subspan(from_prefix);
    if (rest.empty()) return from_prefix;
    const std::int64_t count = source_.read(rest);
    if (count < 0) {
      error_ = errno;
      return from_prefix;
    }
    return from_prefix + static_cast<std::size_t>(count);
  }

 private:
  ByteSource& source_;
  std::array<std::byte, kPrefix> prefix_{};
  std::size_t prefix_bytes_ = 0;
  std::size_t at_ = 0;
  int error_ = 0;
};

void decode_png(Prefixed& source, const std::string& name, RowSink& sink, const ImageLimits& limits);
void decode_jpeg(Prefixed& source, const std::string& name, RowSink& sink, const ImageLimits& limits);

// Throws a UserError for a size beyond the limits.
void check_image_size(std::int64_t width, std::int64_t height, const std::string& name, const ImageLimits& limits);

}  // namespace snug::data
