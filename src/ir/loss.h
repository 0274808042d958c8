// The loss of a program: what it reports and what it reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/op.h"

namespace snug {

// The loss where a step's backward begins, or that of evaluation in a program that makes no steps; UserError when there is none.
struct ProgramLoss {
  const Node* node = nullptr;
  const LossFacts* facts = nullptr;
  StateId labels = StateId::none();   // the input with class numbers; none: the loss takes none
  StateId weights = StateId::none();  // the input with the weights of the rows; none: all weigh the same
  std::int64_t classes = 0;           // number of classes of the labels; 0: the loss takes none
  std::int64_t rows_per_example = 1;
};
ProgramLoss loss_of(const Program& program);

// The unit of throughput: rows of the loss. Examples for a program without a loss.
struct Throughput {
  std::string_view unit = "examples";
  std::int64_t per_example = 1;

  // The rate at that many examples per second.
  double rate(double examples_per_second) const { return examples_per_second * static_cast<double>(per_example); }
  std::string field() const;  // "images_per_second"
};
Throughput throughput_of(const Program& program);

// Whether weights that give `metric` are better than those that gave `best`.
bool is_better(const LossFacts& facts, double metric, double best);

}  // namespace snug
