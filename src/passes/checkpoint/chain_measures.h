// The forward pass as a chain for the program of analysis/chain_program.h, measured on a section whose kernels are chosen:
// how many bytes each link takes in each way of running it, and how long.
#pragma once

#include <vector>

#include "analysis/chain_program.h"
#include "passes/checkpoint/recompute.h"

namespace snug {

struct MeasuredChain {
  // What a mode of the chain's links means to the rewrite: whether normalized values come back on demand.
  static constexpr std::size_t kKeepsAll = 0;
  static constexpr std::size_t kRenews = 1;

  std::vector<Link> links;       // links that begin with what is made cheaply from states, such as images, go with the one before
  std::vector<ChainLink> chain;  // the same, as numbers
  std::vector<ValueId> beside;   // ForwardChain::beside
  std::int64_t always_bytes = 0;  // small values and those beside the chain, which stay under every plan
};

// `node_seconds` by forward node.
MeasuredChain measure_chain(const Section& section, const ForwardPass& forward, const std::vector<double>& node_seconds);

// The plan as a rewrite.
Recomputation recomputation_of(const MeasuredChain& measured, const ChainPlan& plan, const ForwardPass& forward);

// Bytes while each node of a section runs, and at its fullest moment.
std::vector<std::int64_t> bytes_by_node(const Section& section);
std::int64_t fullest_bytes(const Section& section);

}  // namespace snug
