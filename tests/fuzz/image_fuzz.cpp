// Any bytes as an image: decoded and resized, or refused with a UserError; never anything else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "data/images/image.h"
#include "data/images/resize.h"
#include "data/memory_source.h"
#include <snug/error.h>

namespace {

// Checksums made right, so that what they protect is reached: a PNG is chunks of length, type, data and checksum.
void repair_png(std::vector<std::byte>& bytes) {
  constexpr std::size_t kSignature = 8;
  const auto number_at = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8U | std::to_integer<std::uint32_t>(bytes[at + i]);
    return value;
  };
  for (std::size_t at = kSignature; bytes.size() >= 12 && at <= bytes.size() - 12;) {
    const std::size_t length = number_at(at);
    if (length > bytes.size() - at - 12) return;
    std::uint32_t crc = 0xFFFFFFFFU;
    for (std::size_t i = at + 4; i < at + 8 + length; ++i) {
      crc ^= std::to_integer<std::uint32_t>(bytes[i]);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ (crc % 2 != 0 ? 0xEDB88320U : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<std::byte>(~crc >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  using namespace snug::data;
  // Sizes that grow and shrink; small limits, so that most of the time is not spent on painting.
  const std::int64_t side = count > 0 ? 1 + bytes[count - 1] % 40 : 1;
  const ImageLimits limits{.side = 5000, .pixels = 200'000, .buffered_bytes = 1 << 20, .scans = 20};
  std::vector<std::byte> target(static_cast<std::size_t>(side * side * 3));
  const auto input = std::as_bytes(std::span(bytes, count));
  std::vector<std::byte> image(input.begin(), input.end());
  if (count > 0 && bytes[0] == 0x89) repair_png(image);
  MemorySource source(image);
  Resizer resizer(side, target);
  try {
    decode_image(source, "input", resizer, limits);
    if (!resizer.complete()) std::abort();
  } catch (const snug::UserError&) {
  }
  return 0;
}
