// Texts from files and flags, made fit for a message.
#pragma once

#include <string>
#include <string_view>

namespace snug {

// Without what a terminal would obey instead of show: control characters but the ends of lines, and bytes that are not UTF-8,
// become question marks.
std::string without_controls(std::string_view text);

// On one line, without control characters, cut between characters (UTF-8) after `most` bytes.
std::string printable(std::string_view text, std::size_t most = 80);

// The same in quotes: 'text'.
std::string in_quotes(std::string_view text, std::size_t most = 80);

}  // namespace snug
