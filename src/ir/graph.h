// A model before differentiation: the forward ops of one microbatch, and what training needs to know about its states.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace snug {

// How a state begins. Random ones are keyed by the state's number and drawn per logical element.
struct Initializer {
  enum class Kind : std::uint8_t { none, constant, normal, uniform };
  Kind kind = Kind::none;
  double amount = 0;  // the constant, the standard deviation or the bound
};

struct Graph {
  std::string name;
  std::int64_t batch = 0;  // examples of one microbatch
  std::vector<State> states;
  std::vector<Initializer> initializers;  // one a state
  Section forward;
  NodeId loss = NodeId::none();
  // In evaluation, `second` is read where training reads `first`: running statistics for those of the batch, a dropout's input
  // for its output, plain images for augmented ones. Whatever nothing reads any more falls away.
  std::vector<std::pair<ValueId, ValueId>> evaluation_substitutes;

  StateId scalars = StateId::none();
  StateId metrics = StateId::none();
};

}  // namespace snug
