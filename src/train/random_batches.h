// Random examples in the shape of a program's inputs, for timing steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "train/session.h"

namespace snug::train {

// A few batches that steps use in turn: drawing new ones would be timed with the step. Any bytes and real numbers, labels within
// the loss's classes, numbers of rows that there are, weights of 1. UserError when the range of an integer input is not known.
class RandomBatches {
 public:
  RandomBatches(const Program& program, std::int64_t examples, std::uint64_t seed, std::size_t batches = 4);
  RandomBatches(const RandomBatches&) = delete;
  RandomBatches& operator=(const RandomBatches&) = delete;

  Examples operator[](std::size_t step) const { return {.inputs = inputs_[step % inputs_.size()], .count = examples_}; }

 private:
  std::size_t examples_;
  std::vector<std::vector<std::vector<std::byte>>> bytes_;  // by batch and input
  std::vector<std::vector<data::NamedBytes>> inputs_;
  std::vector<std::string> names_;  // copies: the program need not outlive this
};

}  // namespace snug::train
