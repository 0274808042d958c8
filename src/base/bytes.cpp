#include "base/bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace snug {

Bytes parse_bytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 8> kUnits{{{"", 1},
                                                                              {"B", 1},
                                                                              {"KB", 1e3},
                                                                              {"MB", 1e6},
                                                                              {"GB", 1e9},
                                                                              {"KiB", 1024.0},
                                                                              {"MiB", 1024.0 * 1024},
                                                                              {"GiB", 1024.0 * 1024 * 1024}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : kUnits) {
    if (error != std::errc() || unit != name) continue;
    const double bytes = number * factor;
    // Up to 2^53 a double still counts single bytes.
    if (!(bytes >= 0 && bytes <= 9007199254740992.0)) break;
    return Bytes(static_cast<std::int64_t>(std::llround(bytes)));
  }
  throw_user_error("'{}' is not a size; write a number of bytes such as 6.7MB (1e6), 6.4MiB (2^20) or 6700000", text);
}

std::string format_bytes(Bytes size) {
  const auto count = static_cast<double>(size.count());
  if (std::abs(count) < 1e3) return fmt::format("{} B", size.count());
  if (std::abs(count) < 1e6) return fmt::format("{:.2f} KB", count / 1e3);
  if (std::abs(count) < 1e9) return fmt::format("{:.2f} MB", count / 1e6);
  return fmt::format("{:.2f} GB", count / 1e9);
}

}  // namespace snug
