#include "data/text/bleu_words.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/text/unicode.h"

namespace snug::data {

namespace {

// Python's: those of Unicode and the four separators of ASCII.
bool is_space(char32_t code) { return class_of(code) == CharacterClass::space || (code >= 0x1C && code <= 0x1F); }
bool is_ascii_space(char32_t code) { return code == U' ' || (code >= U'\t' && code <= U'\r'); }

template <typename IsSpace>
std::u32string with_single_spaces(std::u32string_view text, const IsSpace& is_space) {
  std::u32string words;
  words.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_space(text[i])) continue;
    if (i > 0 && is_space(text[i - 1]) && !words.empty()) words += U' ';
    words += text[i];
  }
  return words;
}

std::u32string_view without_trailing_spaces(std::u32string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::u32string replaced(std::u32string_view text, std::u32string_view from, std::u32string_view to) {
  std::u32string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = text.find(from, begin)) != std::u32string_view::npos; begin = at + from.size()) {
    result += text.substr(begin, at - begin);
    result += to;
  }
  result += text.substr(begin);
  return result;
}

template <typename Wanted>
std::u32string with_spaces_around(std::u32string_view text, const Wanted& wanted) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (const char32_t code : text) {
    if (wanted(code)) {
      result += {U' ', code, U' '};
    } else {
      result += code;
    }
  }
  return result;
}

// Where a space goes into a pair of characters, beside the one between them.
enum class Space : std::uint8_t { before, after };

// Pairs do not overlap: the second of one is not the first of the next, as in a substitution by a regular expression.
template <typename First, typename Second>
std::u32string with_pairs_apart(std::u32string_view text, const First& first, const Second& second, Space space) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      result += text[i];
      continue;
    }
    if (space == Space::before) result += U' ';
    result += {text[i], U' ', text[i + 1]};
    if (space == Space::after) result += U' ';
    ++i;
  }
  return result;
}

std::u32string by_mteval_13a(std::u32string_view sentence) {
  // An ampersand that was written as an entity may begin another one: the order counts.
  constexpr std::array<std::pair<std::u32string_view, std::u32string_view>, 7> kReplacements{{{U"<skipped>", U""},
                                                                                              {U"-\n", U""},
                                                                                              {U"\n", U" "},
                                                                                              {U"&quot;", U"\""},
                                                                                              {U"&amp;", U"&"},
                                                                                              {U"&lt;", U"<"},
                                                                                              {U"&gt;", U">"}}};
  std::u32string text(sentence);
  for (const auto& [from, to] : kReplacements) text = replaced(text, from, to);
  text = U" " + text + U" ";

  const auto is_ascii_punctuation = [](char32_t code) {  // but ' , - .
    return (code >= U' ' && code <= U'&') || (code >= U'(' && code <= U'+') || code == U'/' || (code >= U':' && code <= U'@') ||
           (code >= U'[' && code <= U'`') || (code >= U'{' && code <= U'~');
  };
  const auto is_digit = [](char32_t code) { return code >= U'0' && code <= U'9'; };
  const auto is_no_digit = [&](char32_t code) { return !is_digit(code); };
  const auto is_stop = [](char32_t code) { return code == U'.' || code == U','; };
  const auto is_dash = [](char32_t code) { return code == U'-'; };
  text = with_spaces_around(text, is_ascii_punctuation);
  text = with_pairs_apart(text, is_no_digit, is_stop, Space::after);
  text = with_pairs_apart(text, is_stop, is_no_digit, Space::before);
  return with_pairs_apart(text, is_digit, is_dash, Space::after);
}

std::u32string by_mteval_14(std::u32string_view sentence) {
  const auto is_no_number = [](char32_t code) { return class_of(code) != CharacterClass::number; };
  std::u32string text = with_pairs_apart(sentence, is_no_number, is_punctuation, Space::after);
  text = with_pairs_apart(text, is_punctuation, is_no_number, Space::before);
  return with_spaces_around(text, is_symbol);
}

std::u32string lowercase_ascii(std::u32string text) {
  for (char32_t& code : text) {
    if (code >= U'A' && code <= U'Z') code += U'a' - U'A';
  }
  return text;
}

}  // namespace

std::u32string bleu_words(std::u32string_view sentence, BleuTokenizer tokenizer, bool lowercase) {
  std::u32string text(sentence);
  if (lowercase) text = tokenizer == BleuTokenizer::multi_bleu ? lowercase_ascii(std::move(text)) : data::lowercase(text);
  const std::u32string_view trimmed = without_trailing_spaces(text);
  switch (tokenizer) {
    case BleuTokenizer::mteval_13a:
      return with_single_spaces(by_mteval_13a(trimmed), is_space);
    case BleuTokenizer::international:
      return with_single_spaces(by_mteval_14(trimmed), is_space);
    case BleuTokenizer::characters:
      return with_single_spaces(with_spaces_around(trimmed, [](char32_t /*code*/) { return true; }), is_space);
    case BleuTokenizer::none:
      return with_single_spaces(trimmed, is_space);
    case BleuTokenizer::multi_bleu:
      return with_single_spaces(text, is_ascii_space);
  }
  throw InternalError("a tokenizer of no known kind");
}

}  // namespace snug::data
