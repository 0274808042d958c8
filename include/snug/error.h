// The failures that the library reports, all by exception; it never aborts.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace snug {

// The user gave something that cannot work: a bad model, flag, file or shape. The message names the thing, the value and the way
// out.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The work does not fit the memory given. A result, not a crash: the message says what would fit.
class DoesNotFit : public std::runtime_error {
 public:
  explicit DoesNotFit(const std::string& message, std::int64_t smallest_budget_bytes = 0)
      : std::runtime_error(message), smallest_budget_bytes_(smallest_budget_bytes) {}

  // The least that would do, to the byte; 0: not known.
  std::int64_t smallest_budget_bytes() const { return smallest_budget_bytes_; }

 private:
  std::int64_t smallest_budget_bytes_;
};

// An invariant of Snug itself is broken: a defect in Snug, never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace snug
