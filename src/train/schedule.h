// Learning rates as pure functions of the step: nothing to save, nothing to resume.
#pragma once

#include <cstdint>
#include <vector>

namespace snug::train {

// Steps count from 0. All kinds can start with a linear warm-up; the formulas are those of PyTorch's schedulers.
//   warm-up    warmup_start + (base - warmup_start) step / warmup_steps      before step warmup_steps        (LinearLR)
//   constant   base
//   step       base * gamma^(how many milestones are at or before the step)                                  (MultiStepLR)
//   cosine     final + (base - final) (1 + cos(pi t)) / 2, t = (step - warmup_steps) / (total_steps - warmup_steps);
//              final from total_steps on                                                                      (CosineAnnealingLR)
//   linear     base + (final - base) t, t as above; final from total_steps on                                 (LinearLR)
//   inverse_sqrt  base * sqrt(warmup_steps / step), which needs a warm-up: that of Transformers (Vaswani et al., "Attention is
//              all you need", NeurIPS 2017) as fairseq computes it, and on however many steps the run has
struct Schedule {
  enum class Kind : std::uint8_t { constant, step, cosine, linear, inverse_sqrt };
  Kind kind = Kind::constant;
  double base = 0.1;
  std::uint64_t warmup_steps = 0;              // 0: no warm-up
  double warmup_start = 0;                     // the rate of step 0 when there is a warm-up
  std::uint64_t total_steps = 0;               // of the run; needed for cosine and linear, may be 0 for others
  std::vector<std::uint64_t> milestones = {};  // of `step`, rising, counted from the run's first step
  double gamma = 0.1;                          // of `step`
  double final = 0;                            // of `cosine` and `linear`
};

// UserError, saying what to change, when the settings are impossible.
void check(const Schedule& schedule);

// The rate of one step; UserError as above.
double learning_rate(const Schedule& schedule, std::uint64_t step);

}  // namespace snug::train
