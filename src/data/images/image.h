// PNG and JPEG files, decoded row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/images/resize.h"

namespace snug::data {

// Where an image's bytes come from, in order.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // How many bytes were read: fewer than asked for only at the end, -1 with errno on a system error. Decoders call it from C
  // code, through which no exception may pass.
  virtual std::int64_t read(std::span<std::byte> bytes) noexcept = 0;
};

// Limits on what an image may need: a small file can declare a size beyond any machine's memory.
struct ImageLimits {
  std::int64_t side = 30'000;
  std::int64_t pixels = 100'000'000;
  // For images that cannot be decoded row by row: interlaced PNG, progressive JPEG.
  std::int64_t buffered_bytes = 64 << 20;
  // Passes over the picture that a progressive JPEG may make; encoders make about ten.
  int scans = 100;
};

// Tells PNG from JPEG by the first bytes, not by the file's name, and gives its rows to `sink` as 8-bit RGB: gray and palettes
// are expanded, 16 bits become 8, transparent pixels are put on white. UserError naming `name` when the image is truncated,
// corrupt, beyond the limits, in CMYK or of another kind.
void decode_image(ByteSource& source, const std::string& name, RowSink& sink, const ImageLimits& limits = {});

}  // namespace snug::data
