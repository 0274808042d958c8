// How byte-level BPE writes bytes in its files: each byte as one printable character, so that tokens are text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::data {

// The bytes of '!' to '~', 0xA1 to 0xAC and 0xAE to 0xFF are the code points of their values; the others, in order, are U+0100
// and on: a space is U+0120.
std::string spell_bytes(std::string_view bytes);
// Nothing where a character stands for no byte.
std::optional<std::string> bytes_spelled(std::string_view text);

}  // namespace snug::data
