// A number and what it counts, in correct English.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace snug {

// "1 step", "2 steps"; words that do not take an s: counted(n, "class", "classes").
template <std::integral Number>
std::string counted(Number count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace snug
