#include "data/images/image.h"

#include <algorithm>

#include "base/error.h"
#include "data/file.h"
#include "data/images/image_decoders.h"

namespace snug::data {

namespace {

bool begins_with(std::span<const std::byte> bytes, std::initializer_list<unsigned char> expected) {
  return bytes.size() >= expected.size() && std::equal(expected.begin(), expected.end(), bytes.begin(),
                                                       [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

}  // namespace

void check_image_size(std::int64_t width, std::int64_t height, const std::string& name, const ImageLimits& limits) {
  if (width < 1 || height < 1) throw_user_error("{} has no pixels: it is {}x{}", name, width, height);
  if (width > limits.side || height > limits.side || width * height > limits.pixels) {
    throw_user_error("{} is {}x{} pixels; at most {} per side and {} in total are read: make it smaller", name, width, height,
                     limits.side, limits.pixels);
  }
}

void decode_image(ByteSource& source, const std::string& name, RowSink& sink, const ImageLimits& limits) {
  Prefixed prefixed(source);
  const auto prefix = prefixed.prefix();
  if (prefixed.error() != 0) throw_user_error("{} cannot be read: {}", name, system_message(prefixed.error()));
  if (prefix.empty()) throw_user_error("{} is empty", name);
  if (begins_with(prefix, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'})) return decode_png(prefixed, name, sink, limits);
  if (begins_with(prefix, {0xFF, 0xD8, 0xFF})) return decode_jpeg(prefixed, name, sink, limits);
  throw_user_error("{} is neither a PNG nor a JPEG file", name);
}

}  // namespace snug::data
