// A PNG file of one color, for tests that need images on disk with any content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include <png.h>

namespace snug::support {

inline void write_plain_png(const std::filesystem::path& path, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  constexpr png_uint_32 kSide = 8;
  std::filesystem::create_directories(path.parent_path());
  std::vector<std::uint8_t> pixels;
  for (png_uint_32 i = 0; i < kSide * kSide; ++i) pixels.insert(pixels.end(), {red, green, blue});
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = kSide;
  image.height = kSide;
  image.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error("no PNG file can be written at " + path.string());
}

}  // namespace snug::support
