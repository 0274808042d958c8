// Which values of the forward pass are kept for backward: the strategies' names and what they mean.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace snug {

struct CheckpointStrategy {
  enum class Kind : std::uint8_t {
    none,           // everything that backward reads is kept
    no_bn,          // results of normalization and of activation functions are recomputed where backward reads them
    every,          // every-M: of the values that alone carry the forward pass on, each M-th is kept
    residual,       // residual-M: the results of every M-th residual block are kept
    residual_star,  // residual-M*: the same; between them blocks are recomputed one at a time, without results of normalization
    sqrt,           // about sqrt(length of the chain) segments of about equal bytes (Chen et al. 2016)
    log,            // recursive halving: about log2(length of the chain) values are kept, and recomputation nests
    chen,           // segments that end when they reach a budget of bytes; the budget with the smallest peak (Chen et al. 2016)
    optimal,        // optimal:LIMIT: the least time for recomputation within a limit (as Beaumont et al. 2019)
    greedy,         // greedy:LIMIT: at the limit, drops what is cheap to recompute, large and not read soon (greedy.h)
  };
  Kind kind = Kind::none;
  std::int64_t every = 0;  // M, from 1; only where the name has one
  Bytes limit = {};        // optimal, greedy: what micro's transient region may take; 0: not given, the budget decides

  friend bool operator==(const CheckpointStrategy&, const CheckpointStrategy&) = default;
};

// One of every kind, as parse_checkpoint_strategy takes them.
std::span<const std::string_view> checkpoint_names();

// "none", "no-bn", "every-3", "residual-2", "residual-2*", "sqrt", "log", "chen", "optimal", "optimal:6.7MB", "greedy:6.7MB";
// UserError naming them otherwise.
CheckpointStrategy parse_checkpoint_strategy(std::string_view text);
// Parses back; a limit as its exact count: "greedy:6700000".
std::string to_string(const CheckpointStrategy& strategy);

}  // namespace snug
