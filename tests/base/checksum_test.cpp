#include "base/checksum.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace snug {

namespace {

std::uint64_t crc(std::string_view text) {
  Crc64 checksum;
  checksum.update(std::as_bytes(std::span(text)));
  return checksum.value();
}

TEST(Checksum, GivesTheCataloguesCheckValue) {
  EXPECT_EQ(crc("123456789"), 0x995DC9BBDF1939FAU);
  EXPECT_EQ(crc(""), 0U);
}

TEST(Checksum, DoesNotDependOnHowTheBytesAreCut) {
  const std::string_view text = "a checksum over pieces is the checksum over the whole";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    Crc64 checksum;
    checksum.update(std::as_bytes(std::span(text.substr(0, first))));
    checksum.update(std::as_bytes(std::span(text.substr(first))));
    EXPECT_EQ(checksum.value(), crc(text)) << "cut at " << first;
  }
}

TEST(Checksum, ChangesWithEveryBit) {
  std::vector<std::byte> bytes(100);
  Crc64 whole;
  whole.update(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    Crc64 damaged;
    damaged.update(bytes);
    EXPECT_NE(damaged.value(), whole.value()) << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace

}  // namespace snug
