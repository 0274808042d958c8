// How a plan is made: one record of every choice among the memory methods. A recipe holds what was given, the solver adds what it
// chooses, and a plan carries all of it, and writes it to its file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "ir/type.h"
#include "passes/checkpoint/strategy.h"

namespace snug {

// What is missing was not given. In a plan's record it is not done: no limit, no compression, all
// weights stored.
struct Methods {
  std::optional<DType> precision;                // of values: f32, f16 or bf16
  std::optional<double> nonzero;                 // share of the convolutions' weights that is stored
  std::optional<std::int64_t> momentum_bits;     // per element of sgd's large momenta: 8 or 32
  std::optional<std::int64_t> moment_bits;       // per element of adamw's moments: 8, 16 or 32
  std::optional<std::int64_t> microbatch;        // examples per run of forward and backward
  std::optional<std::int64_t> statistics_group;  // examples whose batch-norm statistics are taken together; else the microbatch
  std::optional<CheckpointStrategy> checkpoint;  // what backward recomputes instead of keeping
  std::optional<std::int64_t> compress_bits;     // per element that waits for backward: 8, 4 or 2
  std::optional<bool> offload;                   // what waits for backward lies in host memory
  std::optional<bool> drop_gradients;            // gradients are added to the momentum at once
  std::optional<bool> fuse_update;               // weights are updated in backward
  std::optional<bool> prepack_weights;           // copies of weights that kernels would make at every run are states
  std::optional<Bytes> workspace_limit;          // the most scratch of one kernel

  friend bool operator==(const Methods&, const Methods&) = default;
};

// Without what says "not done": all weights stored, momentum in 32 bits, no pass that runs only when it is asked for. Whether an
// update may be fused stays: `no` forbids it.
Methods normalized(Methods methods);

// "fp32", "fp16", "bf16"; nothing when there is no such precision.
std::string_view precision_name(DType type);
std::optional<DType> parse_precision(std::string_view name);

// "precision=bf16 microbatch=10 checkpoint=optimal:6280252 ...": what is there, in a fixed order; parse_methods reads it back.
std::string print_methods(const Methods& methods);
// UserError naming the first word that is not a method with its value.
Methods parse_methods(std::string_view text);

}  // namespace snug
