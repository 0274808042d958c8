// Standard output, checked: a full disk must not pass for success.
#pragma once

#include <stdexcept>
#include <string_view>

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

}  // namespace snug::cli
