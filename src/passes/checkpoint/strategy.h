// Which values of the forward pass stay for backward: the strategies' names and what they mean.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace snug {

struct CheckpointStrategy {
  enum class Kind : std::uint8_t {
    none,           // everything that backward reads stays
    no_bn,          // results of normalization, and of ReLUs on them, are made again where backward reads them
    every,          // every-M: of the values that alone carry the forward pass on, each M-th stays
    residual,       // residual-M: the results of every M-th residual block stay
    residual_star,  // residual-M*: the same; between them block after block is made again, without results of normalization
    sqrt,           // segments of about equal bytes, about the square root of the chain's length of them (Chen et al. 2016)
    log,            // halves of halves: about log2 of the chain's length of values stay, and recomputation nests
    chen,           // segments of as equal bytes as a budget allows, with the budget whose peak is least (Chen et al. 2016)
    optimal,        // optimal:LIMIT: least time for recomputation within a limit (as Beaumont et al. 2019)
    greedy,         // whenever the limit is reached, what comes back most cheaply for its bytes and its long rest goes (greedy.h)
  };
  Kind kind = Kind::none;
  std::int64_t every = 0;  // M, from 1; only where the name has one
  Bytes limit = {};        // optimal, greedy: what micro's transient region may take; 0: not said yet, the budget decides

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
