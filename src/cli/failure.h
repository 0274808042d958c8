// How the command ends.
#pragma once

#include <exception>

namespace snug::cli {

// Exit codes, the same for every command.
inline constexpr int kDone = 0;
inline constexpr int kInternalError = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kDoesNotFit = 3;

// Says on standard error, in one sentence that begins with "snug: ", what went wrong, and returns the exit code for it. A reader
// of standard output that left has had enough: no failure.
int report_failure(const std::exception_ptr& failure);

}  // namespace snug::cli
