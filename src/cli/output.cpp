#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>

namespace snug::cli {

void write_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw ReaderGone();
  throw OutputFailed(fmt::format("standard output could not be written: {}", std::generic_category().message(errno)));
}

}  // namespace snug::cli
