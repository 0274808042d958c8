#include "base/printable.h"

#include <algorithm>

namespace snug {

namespace {

// Bytes of the UTF-8 character that the text begins with; 0: it is not one.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80   ? 1
                             : byte(0) < 0xC2 ? 0
                             : byte(0) < 0xE0 ? 2
                             : byte(0) < 0xF0 ? 3
                             : byte(0) < 0xF5 ? 4
                                              : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  // Overlong forms, surrogates, beyond Unicode's end.
  if (byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (byte(0) == 0xED && byte(1) >= 0xA0) return 0;
  if (byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

// U+0000 to U+001F, U+007F to U+009F.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0 || (is_control(character) && character != "\n")) {
      result += '?';
    } else {
      result += character;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string printable(std::string_view text, std::size_t most) {
  std::size_t end = std::min(text.size(), most);
  // A byte 10xxxxxx continues a character; the cut goes before the byte that begins it.
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  std::string result = without_controls(text.substr(0, end));
  std::ranges::replace(result, '\n', '?');
  return end < text.size() ? result + "..." : result;
}

std::string in_quotes(std::string_view text, std::size_t most) { return "'" + printable(text, most) + "'"; }

}  // namespace snug
