// UTF-8, one character at a time. Bytes that are not UTF-8 are bytes of their own: no text is refused for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snug::data {

struct Character {
  enum class Kind : std::uint8_t {
    whole,      // a code point
    bad,        // one byte that is no part of a character
    incomplete  // the text ends before it is known which of the two
  };
  Kind kind = Kind::whole;
  char32_t code = 0;
  std::size_t bytes = 0;  // how many of the text's; of an incomplete one all that are there
};

// The first character of `text`, which is not empty. Overlong forms, surrogates and numbers beyond U+10FFFF are bad.
Character first_character(std::string_view text);

// The code points of a text; nothing where some of its bytes are not UTF-8.
std::optional<std::u32string> decode_utf8(std::string_view text);

// Where the last character of `text` begins if more bytes are needed to complete it; else the text's size.
std::size_t begin_of_incomplete_end(std::string_view text);

// Counts the bytes of a text that are not UTF-8, given piece by piece.
class Utf8Check {
 public:
  void feed(std::string_view bytes);
  // The end of a text: an incomplete character is bad. What is fed then begins another; offsets go on.
  void finish();

  std::int64_t bad_bytes() const { return bad_bytes_; }
  std::int64_t first_bad() const { return first_bad_; }  // its offset; -1: none is bad

 private:
  void check(std::string_view text, bool is_end);
  void add_bad(std::int64_t offset, std::int64_t count);

  std::string held_;         // of a character that is not complete
  std::int64_t offset_ = 0;  // of the first byte that is not checked
  std::int64_t bad_bytes_ = 0;
  std::int64_t first_bad_ = -1;
};

}  // namespace snug::data
