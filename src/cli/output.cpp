#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace snug::cli {

namespace {

bool wrote_something = false;  // as there is one standard output

}  // namespace

bool has_written() { return wrote_something; }

void write_out(std::string_view text) {
  wrote_something = true;
  const std::string shown = without_controls(text);
  errno = 0;
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw ReaderGone();
  throw OutputFailed(fmt::format("standard output could not be written: {}", std::generic_category().message(errno)));
}

std::string print_json(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void write_json(const nlohmann::ordered_json& json) { write_out(print_json(json) + "\n"); }

void note(std::string_view line) {
  const std::string shown = without_controls(line) + "\n";
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void note_each(std::span<const std::string> sentences) {
  for (const std::string& sentence : sentences) note("snug: " + sentence);
}

}  // namespace snug::cli
