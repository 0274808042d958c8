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

// The lowercase of `first`, of `first + step` and so on is this much further on.
struct Lowercase {
  char32_t first;
  char32_t last;
  std::uint8_t step;
  std::int32_t distance;
};

#include "data/text/unicode_ranges.inc"

// The range that has the code, if it has none between its ends; nullptr where there is none.
template <typename Row>
constexpr const Row* find_range(std::span<const Row> ranges, char32_t code) {
  const Row* after = std::upper_bound(ranges.data(), ranges.data() + ranges.size(), code,
                                      [](char32_t value, const Row& range) { return value < range.first; });
  return after != ranges.data() && code <= (after - 1)->last ? after - 1 : nullptr;
}

constexpr bool contains(std::span<const Range> ranges, char32_t code) { return find_range(ranges, code) != nullptr; }

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

constexpr char32_t kCapitalSigma = 0x3A3, kSigma = 0x3C3, kFinalSigma = 0x3C2;
constexpr char32_t kDottedCapitalI = 0x130;
constexpr std::u32string_view kDottedI = U"i\u0307";

char32_t simple_lowercase(char32_t code) {
  const Lowercase* range = find_range(std::span<const Lowercase>(kLowercase), code);
  if (range == nullptr || (code - range->first) % range->step != 0) return code;
  return static_cast<char32_t>(static_cast<std::int32_t>(code) + range->distance);
}

// Whether a letter that has a case is next, where characters such as apostrophes and accents do not count.
template <typename Iterator>
bool has_case_next(Iterator at, Iterator end) {
  at = std::find_if(at, end, [](char32_t code) { return !contains(kCaseIgnorable, code); });
  return at != end && contains(kCased, *at);
}

}  // namespace

CharacterClass class_of(char32_t code) { return code < kAscii.size() ? kAscii[code] : find_class(code); }

bool is_punctuation(char32_t code) { return contains(kPunctuation, code); }
bool is_symbol(char32_t code) { return contains(kSymbols, code); }

std::u32string lowercase(std::u32string_view text) {
  std::u32string lower;
  lower.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kDottedCapitalI) {
      lower += kDottedI;
    } else if (text[i] == kCapitalSigma) {
      const std::u32string_view before = text.substr(0, i);
      const std::u32string_view after = text.substr(i + 1);
      const bool ends_word = has_case_next(before.rbegin(), before.rend()) && !has_case_next(after.begin(), after.end());
      lower += ends_word ? kFinalSigma : kSigma;
    } else {
      lower += simple_lowercase(text[i]);
    }
  }
  return lower;
}

}  // namespace snug::data
