// PNG and JPEG files in memory, made with the libraries' writers.
#pragma once

#include <cstdint>
#include <vector>

#include "support.h"

namespace snug::data {

enum class PngKind { gray, gray_1_bit, gray_alpha, rgb, rgb_16_bit, rgba, palette, palette_transparent };

struct PngOptions {
  PngKind kind = PngKind::rgb;
  bool interlaced = false;
};

// `samples` are 8-bit: as many a pixel as the kind has channels (palette indices for palettes, 0 and 1 for one bit).
ByteString make_png(std::uint32_t width, std::uint32_t height, const std::vector<std::uint8_t>& samples, PngOptions options = {});

enum class JpegKind { gray, rgb, cmyk };

struct JpegOptions {
  JpegKind kind = JpegKind::rgb;
  bool progressive = false;
  int quality = 95;
};

ByteString make_jpeg(std::uint32_t width, std::uint32_t height, const std::vector<std::uint8_t>& samples,
                     JpegOptions options = {});

// A PNG of one color.
ByteString plain_png(std::uint32_t width, std::uint32_t height, std::uint8_t red, std::uint8_t green, std::uint8_t blue);

}  // namespace snug::data
