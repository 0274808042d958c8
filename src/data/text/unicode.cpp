#include "data/text/unicode.h"

#include <algorithm>
#include <array>
#include <span>

namespace snug::data {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};

#include "data/text/unicode_ranges.inc"

constexpr bool contains(std::span<const Range> ranges, char32_t code) {
  const auto* after = std::upper_bound(ranges.data(), ranges.data() + ranges.size(), code,
                                       [](char32_t value, const Range& range) { return value < range.first; });
  return after != ranges.data() && code <= (after - 1)->last;
}

constexpr CharacterClass find_class(char32_t code) {
  if (contains(kLetters, code)) return CharacterClass::letter;
  if (contains(kNumbers, code)) return CharacterClass::number;
  return contains(kSpaces, code) ? CharacterClass::space : CharacterClass::other;
}

constexpr auto kAscii = [] {
  std::array<CharacterClass, 128> classes{};
  for (char32_t code = 0; code < classes.size(); ++code) classes[code] = find_class(code);
  return classes;
}();

}  // namespace

CharacterClass class_of(char32_t code) { return code < kAscii.size() ? kAscii[code] : find_class(code); }

}  // namespace snug::data
