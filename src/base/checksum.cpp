#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace snug {

namespace {

// table[k][b]: what byte b does to the checksum when k more bytes follow it, so that eight bytes take one round.
using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

constexpr Tables make_tables() {
  constexpr std::uint64_t kPolynomial = 0xC96C5795D7870F42U;  // lowest power first
  Tables tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

void Crc64::update(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little, "eight bytes are read as one number, the first one lowest");
  std::uint64_t state = state_;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes.data() + i, 8);
    eight ^= state;
    state = 0;
    for (std::size_t k = 0; k < 8; ++k) state ^= kTables[7 - k][eight >> (8 * k) & 0xFFU];
  }
  for (; i < bytes.size(); ++i) state = (state >> 8U) ^ kTables[0][(state ^ static_cast<std::uint64_t>(bytes[i])) & 0xFFU];
  state_ = state;
}

}  // namespace snug
