// How the command ends.
#pragma once

#include <cstdint>
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

// Who is told of it on standard output: nobody, or the program that asked for JSON.
enum class FailureJson : std::uint8_t { none, printed };

// Says on standard error, in one sentence that begins with "snug: ", what went wrong, and returns the exit code for it. A reader
// of standard output that left has had enough: no failure. Bad input and what does not fit are also printed as JSON, if it is
// asked for:
//
//   {"error": {"code": 3, "kind": "does_not_fit", "message": "...", "least_bytes": 1371600}}
//
// `kind` is "bad_input" with code 2 and "does_not_fit" with code 3; `least_bytes` is there where it is known what would do.
int report_failure(const std::exception_ptr& failure, FailureJson json = FailureJson::none);

}  // namespace snug::cli
