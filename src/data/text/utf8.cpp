#include "data/text/utf8.h"

#include <algorithm>
#include <utility>

namespace snug::data {

namespace {

struct Lead {
  std::size_t bytes = 0;  // 0: no character begins so
  // The range of the second byte, by which overlong forms, surrogates and too large numbers are told.
  unsigned least = 0x80;
  unsigned most = 0xBF;
};

Lead lead_of(unsigned byte) {
  if (byte < 0x80) return {.bytes = 1};
  if (byte < 0xC2) return {.bytes = 0};
  if (byte < 0xE0) return {.bytes = 2};
  if (byte == 0xE0) return {.bytes = 3, .least = 0xA0};
  if (byte == 0xED) return {.bytes = 3, .most = 0x9F};
  if (byte < 0xF0) return {.bytes = 3};
  if (byte == 0xF0) return {.bytes = 4, .least = 0x90};
  if (byte < 0xF4) return {.bytes = 4};
  if (byte == 0xF4) return {.bytes = 4, .most = 0x8F};
  return {.bytes = 0};
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  const Lead lead = lead_of(byte(0));
  if (lead.bytes == 1) return {.code = byte(0), .bytes = 1};
  if (lead.bytes == 0) return {.kind = Character::Kind::bad, .bytes = 1};
  char32_t code = byte(0) & (0x7FU >> lead.bytes);
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {.kind = Character::Kind::incomplete, .bytes = i};
    const unsigned least = i == 1 ? lead.least : 0x80;
    const unsigned most = i == 1 ? lead.most : 0xBF;
    if (byte(i) < least || byte(i) > most) return {.kind = Character::Kind::bad, .bytes = 1};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  return {.code = code, .bytes = lead.bytes};
}

std::optional<std::u32string> decode_utf8(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.kind != Character::Kind::whole) return std::nullopt;
    codes += character.code;
    text.remove_prefix(character.bytes);
  }
  return codes;
}

std::size_t begin_of_incomplete_end(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const std::size_t at = text.size() - back;
    if ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) continue;
    return first_character(text.substr(at)).kind == Character::Kind::incomplete ? at : text.size();
  }
  return text.size();
}

void Utf8Check::add_bad(std::int64_t offset, std::int64_t count) {
  if (bad_bytes_ == 0) first_bad_ = offset;
  bad_bytes_ += count;
}

void Utf8Check::check(std::string_view text, bool is_end) {
  while (!text.empty()) {
    const auto ascii = static_cast<std::size_t>(
        std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }) - text.begin());
    offset_ += static_cast<std::int64_t>(ascii);
    text.remove_prefix(ascii);
    if (text.empty()) return;
    Character character = first_character(text);
    if (character.kind == Character::Kind::incomplete) {
      if (!is_end) {
        held_ = text;
        return;
      }
      character.kind = Character::Kind::bad;
    }
    if (character.kind == Character::Kind::bad) add_bad(offset_, static_cast<std::int64_t>(character.bytes));
    offset_ += static_cast<std::int64_t>(character.bytes);
    text.remove_prefix(character.bytes);
  }
}

void Utf8Check::feed(std::string_view bytes) {
  while (!held_.empty() && !bytes.empty()) {
    const std::string text = std::exchange(held_, {}) + bytes.front();
    bytes.remove_prefix(1);
    check(text, /*is_end=*/false);
  }
  check(bytes, /*is_end=*/false);
}

void Utf8Check::finish() { check(std::exchange(held_, {}), /*is_end=*/true); }

}  // namespace snug::data
