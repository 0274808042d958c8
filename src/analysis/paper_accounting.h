// Memory and FLOPs of a training step by the rules of "Low-Memory Neural Network Training": model, optimizer and activations as
// the paper counts them, without workspace, layouts, alignment or placement. docs/accounting.md has the rules. What Snug itself
// needs is the plan's figure; this one makes networks and strategies comparable with the paper's tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "ir/program.h"

namespace snug::paper {

// What backward recomputes instead of keeping.
struct Strategy {
  enum class Kind : std::uint8_t {
    none,           // keeps all that it needs
    no_bn,          // recomputes normalizations and the ReLUs after them
    every,          // keeps what every m-th op reads
    residual,       // keeps every m-th residual unit's output
    residual_star,  // the same, with the other outputs only while their segment is differentiated, and no normalization
    optimal,        // not in the paper: least FLOPs with at most `limit` bytes of activations, by the paper's rules
  };
  Kind kind = Kind::none;
  std::int64_t m = 0;  // of every, residual and residual_star
  Bytes limit = {};    // of optimal

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// "none", "no-bn", "every-8", "residual-2", "residual-2*", "optimal:30MB"; UserError on anything else.
Strategy parse_strategy(std::string_view name);
std::string name_of(const Strategy& strategy);

struct Options {
  std::int64_t value_bytes = 4;  // of weights, gradients, momenta and activations: 4 or 2; normalization's parameters stay 4
  double nonzero = 1.0;          // share of the convolution weights that are stored, except the first layer's
};

// One copy of the parameters each; the paper's "optimizer memory" is gradient and momentum together.
struct StateBytes {
  Bytes model;  // with the index of sparse weights, which the copies share
  Bytes gradient;
  Bytes momentum;

  Bytes optimizer() const { return gradient + momentum; }
  Bytes total() const { return model + gradient + momentum; }
};
StateBytes state_bytes(const Program& model, const Options& options);

// At the peak of backward, for the model's microbatch.
struct ActivationBytes {
  Bytes kept;         // checkpoints and what the ops keep
  Bytes renewed;      // recomputed for the op that is being differentiated
  Bytes gradients;    // of its output, and those that wait for a skip connection
  std::string layer;  // that op's

  Bytes total() const { return kept + renewed + gradients; }
};

// Of one example. The loss, the input's preparation and the update are not counted.
struct FlopCount {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t recompute = 0;

  double ratio() const;  // to the step without recomputation
};

struct Accounting {
  Strategy strategy;
  StateBytes states;
  ActivationBytes activations;
  FlopCount flops;

  Bytes total() const { return states.total() + activations.total(); }
};

// UserError when the strategy needs residual units and the model has none.
Accounting account(const Program& model, const Strategy& strategy, const Options& options = {});

bool has_residual_units(const Program& model);

}  // namespace snug::paper
