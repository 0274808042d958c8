// Sizes in bytes. MB is 1e6 and MiB is 2^20 bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace snug {

// A count of bytes that does not convert to or from other numbers by accident.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes(a.count_ * n); }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  std::int64_t count_ = 0;
};

// Every value in the arena starts on such a boundary: a cache line, and the widest vector load.
inline constexpr Bytes kAlignment{64};

constexpr Bytes round_up(Bytes size, Bytes multiple) {
  return Bytes((size.count() + multiple.count() - 1) / multiple.count() * multiple.count());
}

// "6.7MB", "6.4MiB", "512KB", "1000B" or "1000" to bytes; UserError on anything else.
Bytes parse_bytes(std::string_view text);

// For display: "404.80 MB" (1e6); exact counts below 1 KB.
std::string format_bytes(Bytes size);

}  // namespace snug
