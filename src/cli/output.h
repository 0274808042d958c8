// What the command says. Standard output is checked: a full disk must not pass for success. File names and arguments end up in
// many of its lines, so all of them go through here and lose what a terminal would obey.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace snug::cli {

struct OutputFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Whoever read standard output has closed it.
struct ReaderGone : std::runtime_error {
  ReaderGone() : std::runtime_error("the reader of standard output has gone") {}
};

// Writes all of it and flushes; OutputFailed or ReaderGone when that does not work.
void write_out(std::string_view text);
// In one line. A path is any bytes but JSON is UTF-8: what is not becomes U+FFFD, so that a long run does not end without its
// result.
std::string print_json(const nlohmann::ordered_json& json);
void write_json(const nlohmann::ordered_json& json);

// Whether standard output was given anything so far.
bool has_written();

// A line on standard error.
void note(std::string_view line);
// The same for sentences of a library, such as data::Description::notes.
void note_each(std::span<const std::string> sentences);

}  // namespace snug::cli
