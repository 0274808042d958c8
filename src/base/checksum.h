// A checksum against damage, not against malice: CRC-64 with ECMA-182's polynomial, as xz uses it. Any damage within 8
// consecutive bytes is always found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace snug {

class Crc64 {
 public:
  void update(std::span<const std::byte> bytes);
  std::uint64_t value() const { return ~state_; }

 private:
  std::uint64_t state_ = ~std::uint64_t{0};
};

}  // namespace snug
