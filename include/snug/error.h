// The failures that the library reports, all by exception; it never aborts.
#pragma once

#include <stdexcept>

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
  using std::runtime_error::runtime_error;
};

// An invariant of Snug itself is broken: a defect in Snug, never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace snug
