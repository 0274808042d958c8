#include "data/text/utf8.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace snug::data {
namespace {

using Kind = Character::Kind;

TEST(Utf8, TextsAreDecodedAsAWhole) {
  EXPECT_EQ(decode_utf8("A\xC3\xA9\xF0\x9F\x98\x80"), U"Aé😀");
  EXPECT_EQ(decode_utf8(""), U"");
  EXPECT_EQ(decode_utf8("A\xC3"), std::nullopt);
  EXPECT_EQ(decode_utf8("A\xC3 B"), std::nullopt);
}

TEST(Utf8, CharactersOfOneToFourBytes) {
  for (const auto& [text, code] : std::vector<std::pair<std::string, char32_t>>{{"A", 'A'},
                                                                                {"\xC3\xA9", 0xE9},
                                                                                {"\xE2\x82\xAC", 0x20AC},
                                                                                {"\xF0\x9F\x98\x80", 0x1F600},
                                                                                {"\xF4\x8F\xBF\xBF", 0x10FFFF}}) {
    const Character character = first_character(text + "x");
    EXPECT_EQ(character.kind, Kind::whole);
    EXPECT_EQ(character.code, code);
    EXPECT_EQ(character.bytes, text.size());
    for (std::size_t most = 1; most < text.size(); ++most) {
      const Character cut = first_character(std::string_view(text).substr(0, most));
      EXPECT_EQ(cut.kind, Kind::incomplete);
      EXPECT_EQ(cut.bytes, most);
      EXPECT_EQ(begin_of_incomplete_end("x" + text.substr(0, most)), 1U);
    }
    EXPECT_EQ(begin_of_incomplete_end("x" + text), 1 + text.size());
  }
}

// A lone continuation, a byte that begins nothing, overlong forms, a surrogate, beyond the last code point, a cut character.
TEST(Utf8, WhatIsNoCharacterIsBadOneByteAtATime) {
  for (const std::string text : {"\x80", "\xFF", "\xC0\x80", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80",
                                 "\xF4\x90\x80\x80", "\xE2\x82x", "\xE2x", "\xF5\x80"}) {
    EXPECT_EQ(first_character(text).kind, Kind::bad);
    EXPECT_EQ(first_character(text).bytes, 1U);
  }
}

TEST(Utf8Check, CountsTheSameHoweverTheTextIsCut) {
  const std::string text = "a\xC3\xA9\xE2\x82\xF0\x9F\x98\x80\xED\xA0\x80 \xE2\x82\xAC\x80\xF0\x9F";
  const std::int64_t bad = 2 + 3 + 1 + 2;
  for (std::size_t size = 1; size <= text.size(); ++size) {
    Utf8Check check;
    for (std::size_t at = 0; at < text.size(); at += size) check.feed(std::string_view(text).substr(at, size));
    check.finish();
    EXPECT_EQ(check.bad_bytes(), bad) << "in pieces of " << size;
    EXPECT_EQ(check.first_bad(), 3);
  }
}

TEST(Utf8Check, ACleanTextHasNoFirstBadByte) {
  Utf8Check check;
  check.feed("gr\xC3\xBC\xC3\x9F");
  check.finish();
  EXPECT_EQ(check.bad_bytes(), 0);
  EXPECT_EQ(check.first_bad(), -1);
}

}  // namespace
}  // namespace snug::data
