// The loss of a program, as those see it who report what it says and give it what it reads.
#pragma once

#include <cstdint>

#include "ir/op.h"

namespace snug {

// The section's loss; nullptr: it has none.
const Node* find_loss(const Section& section);

// The loss that a step of the program begins backward with; UserError when it has none.
struct ProgramLoss {
  const Node* node = nullptr;
  const LossFacts* facts = nullptr;
  StateId labels = StateId::none();   // the input with numbers of classes; none: the loss takes none
  StateId weights = StateId::none();  // the input with the weights of the rows; none: all weigh the same
  std::int64_t classes = 0;           // that the labels tell apart; 0: the loss takes none
  std::int64_t rows_per_example = 1;
};
ProgramLoss loss_of(const Program& program);

}  // namespace snug
