// An image file as a data set has it: decoded, and brought to one size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace snug::data {

// Fills `pixels`, side x side x 3 bytes in the order H,W,C. UserError naming the file when it is no image that can be read
// (image.h), or when the system refuses.
void read_image_file(const std::filesystem::path& path, std::int64_t side, std::span<std::byte> pixels);

// Reads all of it and keeps nothing. UserError as above.
void decode_image_file(const std::filesystem::path& path);

}  // namespace snug::data
