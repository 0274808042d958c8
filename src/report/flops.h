// What a training step computes, by phase and by op. A multiply-add counts as two.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace snug::report {

struct PhaseFlops {
  std::int64_t forward = 0;
  std::int64_t recompute = 0;  // forward nodes that run again for backward
  std::int64_t backward = 0;
  std::int64_t update = 0;

  std::int64_t total() const;
  // UserError when the sum does not fit 64 bits.
  void add(Phase phase, std::int64_t flops);
};

struct OpFlops {
  std::string_view op;
  Phase phase = Phase::forward;
  std::int64_t nodes = 0;  // in the program, where microbatches are not repeated
  std::int64_t flops = 0;  // of a step
};

struct StepFlops {
  PhaseFlops step;           // every microbatch and the update
  PhaseFlops per_example;    // rounded; the update belongs to no example and is 0
  std::vector<OpFlops> ops;  // largest first
};

StepFlops flops_of_step(const Program& program);

// FLOPs of the step relative to those without recomputation.
double flops_ratio(const PhaseFlops& step);

// `count` times `times`; UserError when that does not fit 64 bits.
std::int64_t times(std::int64_t count, std::int64_t times);

}  // namespace snug::report
