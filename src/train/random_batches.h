// Random images and labels of the shape that a program takes, for timing steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "train/session.h"

namespace snug::train {

// A few batches that steps take in turn: drawing new ones would be timed with the step. UserError when the program takes other
// inputs than images in bytes.
class RandomBatches {
 public:
  RandomBatches(const Program& program, std::int64_t examples, std::uint64_t seed, std::size_t batches = 4);

  Examples operator[](std::size_t step) const {
    return {.inputs = images_[step % images_.size()], .labels = labels_[step % labels_.size()]};
  }

 private:
  std::vector<std::vector<std::byte>> images_;
  std::vector<std::vector<std::int32_t>> labels_;
};

}  // namespace snug::train
