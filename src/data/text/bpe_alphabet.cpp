#include "data/text/bpe_alphabet.h"

#include <array>

#include "data/text/utf8.h"

namespace snug::data {

namespace {

constexpr bool is_itself(unsigned byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE; }

constexpr unsigned kOthers = 68;  // bytes that are not themselves

constexpr std::array<char32_t, 256> kCharacters = [] {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) characters[byte] = is_itself(byte) ? byte : next++;
  return characters;
}();

constexpr std::array<char, kOthers> kOtherBytes = [] {
  std::array<char, kOthers> bytes{};
  std::size_t count = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!is_itself(byte)) bytes[count++] = static_cast<char>(byte);
  }
  return bytes;
}();

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const char32_t code = kCharacters[static_cast<unsigned char>(c)];
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xC0U | (code >> 6U));
      text += static_cast<char>(0x80U | (code & 0x3FU));
    }
  }
  return text;
}

std::optional<std::string> bytes_spelled(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.kind != Character::Kind::whole) return std::nullopt;
    if (character.code < 0x100 && is_itself(character.code)) {
      bytes += static_cast<char>(character.code);
    } else if (character.code >= 0x100 && character.code < 0x100 + kOthers) {
      bytes += kOtherBytes[character.code - 0x100];
    } else {
      return std::nullopt;
    }
    text.remove_prefix(character.bytes);
  }
  return bytes;
}

}  // namespace snug::data
