// How far down the ladder of exactness a plan may go.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "passes/pass.h"

namespace snug {

std::string_view name_of(Exactness rung);
// All of them, the most exact first.
std::span<const std::string_view> rung_names();

// A set of rungs; `exact` is always among them.
class Allowance {
 public:
  // What is allowed unless the user says otherwise: exact, reassociated, microbatch.
  Allowance() = default;
  static Allowance exact_only() { return Allowance(0); }

  bool has(Exactness rung) const { return rung == Exactness::exact || (bits_ & bit(rung)) != 0; }
  Allowance& add(Exactness rung) {
    if (rung != Exactness::exact) bits_ |= bit(rung);
    return *this;
  }

  friend bool operator==(const Allowance&, const Allowance&) = default;

 private:
  explicit Allowance(unsigned bits) : bits_(bits) {}
  static constexpr unsigned bit(Exactness rung) { return 1U << static_cast<unsigned>(rung); }

  unsigned bits_ = bit(Exactness::reassociated) | bit(Exactness::microbatch);
};

// What is wrong with such a list, as the end of a sentence that
// begins with "allow": a word that is not a rung, or none.
std::optional<std::string> objection_to_allowance(std::span<const std::string> rungs);
// The rungs that are named. If none of `exact`, `reassociated` and `microbatch` is among them, all three are added: a user who
// allows `sparse` need not say that the batch may be split. UserError with that sentence.
Allowance parse_allowance(std::span<const std::string> rungs);
// The same from a comma-separated text, as in "exact,reassociated".
Allowance parse_allowance(std::string_view text);

}  // namespace snug
