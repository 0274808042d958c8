#include "data/text/words.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/text/unicode.h"

namespace snug::data {
namespace {

using Words = std::vector<std::string>;

// The words of a text that is given in pieces of `size` bytes.
Words words_of(const std::string& text, std::size_t size) {
  Words words;
  bool goes_on = false;
  const WordSplitter::Take take = [&](std::string_view bytes, bool is_end) {
    if (!goes_on) words.emplace_back();
    words.back() += bytes;
    goes_on = !is_end;
  };
  WordSplitter splitter;
  for (std::size_t at = 0; at < text.size(); at += size) splitter.feed(std::string_view(text).substr(at, size), take);
  splitter.finish(take);
  EXPECT_FALSE(goes_on);
  return words;
}

void expect_words(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word;
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, text.size() + 1})
    EXPECT_EQ(words_of(text, size), words) << "in pieces of " << size;
}

// What Python's `regex` gives for the pattern.
TEST(WordSplitter, CutsAsThePatternOfGpt2) {
  expect_words({});
  expect_words({"Hello", " world", "!"});
  expect_words({"a", "1", "b", "22", " 3", "c", "...", " ,", " x"});
  expect_words({" "});
  expect_words({"   "});
  expect_words({"a", "  ", " b", "   ", " 1", " ", " !"});
  expect_words({"a", "\n", "b", "\n\n", "\n", "c", " \n", " d", "\t", "e", "\n"});
  expect_words({"a", "\xC2\xA0", "b", " ", "\xC2\xA0", "c", "\xC2\xA0", " d", "\xE3\x80\x80"});
}

TEST(WordSplitter, ContractionsBeginWords) {
  expect_words({"it", "'s", " don", "'t", " they", "'re", " I", "'ve", " I", "'m", " we", "'ll", " he", "'d"});
  expect_words({"it", "'", "S", "'s", "o", "'ll", "y", "'ve", "n"});  // in lower case only, and whatever follows
  expect_words({"'", "l", "'", "le", "'", "v", "'", "rx", "'", "vl"});
  expect_words({" '", "s", " '", "tis"});  // a space in front: the apostrophe is a sign
  expect_words({"!'", "s", " ''", "s", "\n", "'s"});
  expect_words({"''", "re"});
  expect_words({"'"});
  expect_words({"x", "'", "l"});
}

TEST(WordSplitter, KnowsLettersAndNumbersOfAllScripts) {
  expect_words({"\xCE\x95\xCE\xBB", "\xC2\xBD", "\xE6\x97\xA5\xE6\x9C\xAC", " \xE2\x85\xA7", "\xF0\x9F\x98\x80"});
  expect_words({"\xE0\xA4\xB9", "\xE0\xA4\xBF", "\xE0\xA4\xA8"});  // a vowel sign is a mark, no letter
}

TEST(WordSplitter, BytesThatAreNotUtf8AreSigns) {
  expect_words({"a", "\xFF\x80", "b", " \xE2\x82", "c", "!\xF0\x9F", "\n", "\xC3"});
  expect_words({"a", "\xE2\x82"});
  expect_words({"a", "'\xE2\x82"});
}

TEST(WordSplitter, HoldsBackLittleOfALongWord) {
  for (const std::string& unit : {std::string("x"), std::string(" "), std::string("="), std::string("\xC3\xA9")}) {
    std::size_t most_held = 0;
    std::size_t given = 0;
    std::size_t taken = 0;
    const WordSplitter::Take take = [&](std::string_view bytes, bool /*is_end*/) { taken += bytes.size(); };
    WordSplitter splitter;
    for (int i = 0; i < 1000; ++i) {
      std::string piece;
      while (piece.size() < 1000) piece += unit;
      splitter.feed(piece, take);
      given += piece.size();
      most_held = std::max(most_held, given - taken);
    }
    splitter.finish(take);
    EXPECT_EQ(taken, given);
    EXPECT_LT(most_held, WordSplitter::kLeastPart + 1000);
    EXPECT_EQ(words_of(std::string(10'000, unit[0]) + "y", 100).size(), unit == "x" ? 1U : unit == " " ? 2U : 2U);
  }
}

TEST(Unicode, PunctuationAndSymbolsAtTheEdges) {
  for (const char32_t code : {U'!', U'_', U'}', U'\u00A1', U'„', U'。', U'\U0001E95F'}) EXPECT_TRUE(is_punctuation(code));
  for (const char32_t code : {U'$', U'+', U'~', U'€', U'⟠', U'\U0001F600'}) EXPECT_TRUE(is_symbol(code));
  for (const char32_t code : {U'a', U'1', U' ', U'\u0301'}) EXPECT_FALSE(is_punctuation(code) || is_symbol(code));
}

TEST(Unicode, ClassesOfCharactersAtTheEdges) {
  using Class = CharacterClass;
  for (const auto& [code, kind] : std::vector<std::pair<char32_t, Class>>{
           {'@', Class::other},     {'A', Class::letter},     {'Z', Class::letter},     {'[', Class::other},
           {'0', Class::number},    {'9', Class::number},     {'_', Class::other},      {' ', Class::space},
           {'\n', Class::space},    {0x1C, Class::other},     {0x85, Class::space},     {0xAA, Class::letter},
           {0xB2, Class::number},   {0x200B, Class::other},   {0x4E00, Class::letter},  {0x9FFF, Class::letter},
           {0xD800, Class::other},  {0x1D7CE, Class::number}, {0x323AF, Class::letter}, {0x323B0, Class::other},
           {0x10FFFF, Class::other}})
    EXPECT_EQ(class_of(code), kind) << std::hex << static_cast<std::uint32_t>(code);
}

}  // namespace
}  // namespace snug::data
