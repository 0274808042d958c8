// SHA-256 (FIPS 180-4), to verify downloads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace snug::data {

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  // In hexadecimal, lower case. Nothing may be added afterwards.
  std::string finish();

 private:
  void add_block(const std::byte* block);

  std::array<std::uint32_t, 8> state_ = {0x6A09E667U, 0xBB67AE85U, 0x3C6EF372U, 0xA54FF53AU,
                                         0x510E527FU, 0x9B05688CU, 0x1F83D9ABU, 0x5BE0CD19U};
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;  // bytes in block_
  std::uint64_t bytes_ = 0;
};

std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace snug::data
