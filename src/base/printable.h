// Makes texts from files and flags safe for messages.
#pragma once

#include <string>
#include <string_view>

namespace snug {

// Replaces what a terminal would obey instead of show with question marks: control characters except ends of lines, and bytes
// that are not UTF-8.
std::string without_controls(std::string_view text);

// On one line, without control characters, cut between characters (UTF-8) after `most` bytes.
std::string printable(std::string_view text, std::size_t most = 80);

// The same in quotes: 'text'.
std::string in_quotes(std::string_view text, std::size_t most = 80);

}  // namespace snug
