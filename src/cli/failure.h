// How the command ends.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace snug::cli {

// Exit codes, the same for every command.
inline constexpr int kDone = 0;
inline constexpr int kInternalError = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kDoesNotFit = 3;
inline constexpr int kSignal = 128;  // and the number of the signal that was asked to stop with: 130 for Ctrl-C, 143 for SIGTERM

// A signal asked to stop, and the command did, in order. It is thrown so that `snug train && snug export` goes no further.
class Interrupted : public std::runtime_error {
 public:
  // An empty message: everything is said already.
  explicit Interrupted(int signal, const std::string& message = "") : std::runtime_error(message), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

// Says on standard error, in one sentence that begins with "snug: ", what went wrong, and returns the exit code for it. A reader
// of standard output that left has had enough: no failure.
int report_failure(const std::exception_ptr& failure);

}  // namespace snug::cli
