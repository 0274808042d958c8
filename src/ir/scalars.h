// Everything that changes between steps, as data that kernels read: a section of a program never
// changes, so it can be captured once as a CUDA graph. The host writes this block before a section
// runs; it lies in the arena as the state "scalars".
#pragma once

#include <cstdint>
#include <limits>

namespace snug {

struct Scalars {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;            // counts updates; with `seed` it keys every random draw of the step
  std::uint64_t first_example = 0;   // of this microbatch, counted within the step
  std::uint32_t valid_examples = 0;  // of this microbatch; rows after them are padding
  std::uint32_t batch_examples = 0;  // of the whole step
  double total_weight = 0;           // of all rows of the whole step: a row of weight w weighs w / total_weight in the loss
  double learning_rate = 0;
  double loss_scale = 1;
  std::uint16_t skip_update = 0;  // 1: the update only clears the gradients (the loss was not finite, an overflow was found)
  std::uint16_t is_first_microbatch = 0;  // 1: of the step
  // The largest norm of all gradients together, in programs that clip. A float is precise enough for a threshold, and keeps the
  // block's size and so the programs of models that do not clip.
  float clip_norm = std::numeric_limits<float>::infinity();
};
static_assert(sizeof(Scalars) == 64, "the block's size is part of the program text");

// What a microbatch adds to: the state "metrics", f64[3]. The loss op names the first two (LossFacts).
struct Metrics {
  double loss = 0;    // sum over rows of weight * loss / total_weight
  double score = 0;   // sum over rows of weight * what else the loss counts: 1 where the largest logit is the label
  double weight = 0;  // of the rows, without padding
};
static_assert(sizeof(Metrics) == 24);

// Computed by the update of a program that clips: the state "gradient_norm", f64[2].
struct GradientNorm {
  double norm = 0;  // of all gradients together, without the loss scale, before clipping
  // What every gradient is multiplied by. NaN when the norm is not finite: the update then only clears the gradients.
  double factor = 1;
};
static_assert(sizeof(GradientNorm) == 16);

}  // namespace snug
