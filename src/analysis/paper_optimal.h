// A strategy that is not in the paper: by the paper's rules, the least FLOPs within a number of bytes.
#pragma once

#include <vector>

#include "analysis/chain_program.h"
#include "analysis/paper_accounting.h"
#include "analysis/paper_network.h"

namespace snug::paper {

// The network as a chain whose "seconds" are FLOPs of one example. Its links: what comes before the first residual unit, each
// unit with what follows it up to the next, and what follows the last; without units, each op that keeps its input where a single
// value leads on. Only backward has a peak in the paper, so running forward takes no bytes here. Mode 0 keeps all, mode 1, where
// there is one, recomputes normalizations and the ReLUs after them.
struct PaperChain {
  std::vector<std::size_t> begins;  // of each link: its first op
  std::vector<ChainLink> links;
  Bytes input_bytes;  // the network's input is held throughout
};
PaperChain chain_of(const Network& network, const Options& options);

struct OptimalAccounting {
  ChainPlan plan;
  ActivationBytes activations;
  FlopCount flops;
};

// With the fewest bytes where nothing is within the limit.
OptimalAccounting account_optimal(const Program& model, const Network& network, Bytes limit, const Options& options);

}  // namespace snug::paper
