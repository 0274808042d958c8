// Everything that changes between steps, as data that kernels read: a section of a program is code that never changes, so it can
// be captured once as a CUDA graph. The host writes this block before a section runs; it lies in the arena as the state
// "scalars".
#pragma once

#include <cstdint>

namespace snug {

struct Scalars {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;            // counts updates; with `seed` it keys every random draw of the step
  std::uint64_t first_example = 0;   // of this microbatch, counted within the step
  std::uint64_t valid_examples = 0;  // of this microbatch; the rows behind them are padding
  std::uint64_t batch_examples = 0;  // of the whole step: each example weighs 1 / batch_examples
  double learning_rate = 0;
  double loss_scale = 1;
  std::uint64_t skip_update = 0;  // 1: the update only clears the gradients (an overflow was found)
};
static_assert(sizeof(Scalars) == 64, "the block's size is part of the program text");

// What a microbatch adds to: the state "metrics", f64[3].
struct Metrics {
  double loss = 0;      // sum over examples of loss / batch_examples
  double correct = 0;   // examples whose largest logit is the label
  double examples = 0;  // valid ones
};
static_assert(sizeof(Metrics) == 24);

}  // namespace snug
