#include "base/printable.h"

#include <algorithm>

namespace snug {

std::string printable(std::string_view text, std::size_t most) {
  std::size_t end = std::min(text.size(), most);
  // A byte 10xxxxxx goes on with a character; the cut goes before the one that begins it.
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  std::string result(text.substr(0, end));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return end < text.size() ? result + "..." : result;
}

std::string in_quotes(std::string_view text, std::size_t most) { return "'" + printable(text, most) + "'"; }

}  // namespace snug
