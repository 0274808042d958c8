// How a state of a model is initialized.
#pragma once

#include <cstdint>

namespace snug {

// Random values are keyed by the state's number in the model as it was built, and drawn per logical element.
struct Initializer {
  enum class Kind : std::uint8_t { none, constant, normal, uniform };
  Kind kind = Kind::none;
  double amount = 0;  // the constant, the standard deviation or the bound
};

}  // namespace snug
