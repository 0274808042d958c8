// The loss of a program, as those see it who report what it says and give it what it reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/op.h"

namespace snug {

// The loss that a step of the program begins backward with, or that of its evaluation where it makes no steps; UserError when it
// has none.
struct ProgramLoss {
  const Node* node = nullptr;
  const LossFacts* facts = nullptr;
  StateId labels = StateId::none();   // the input with numbers of classes; none: the loss takes none
  StateId weights = StateId::none();  // the input with the weights of the rows; none: all weigh the same
  std::int64_t classes = 0;           // that the labels tell apart; 0: the loss takes none
  std::int64_t rows_per_example = 1;
};
ProgramLoss loss_of(const Program& program);

// What speeds are counted in: the rows of the loss. Examples for a program without a loss.
struct Throughput {
  std::string_view unit = "examples";
  std::int64_t per_example = 1;

  // Of so many examples in a second.
  double rate(double examples_per_second) const { return examples_per_second * static_cast<double>(per_example); }
  std::string field() const;  // "images_per_second"
};
Throughput throughput_of(const Program& program);

// By these facts, whether weights that give `metric` are better than those that gave `best`.
bool is_better(const LossFacts& facts, double metric, double best);

}  // namespace snug
