// The forward pass as a chain for the program of analysis/chain_program.h, measured on a section whose kernels are chosen: how
// many bytes and how much time each link takes in each mode.
#pragma once

#include <vector>

#include "analysis/chain_program.h"
#include "passes/checkpoint/recompute.h"

namespace snug {

struct MeasuredChain {
  // Modes of the chain's links: whether normalized values are kept or recomputed on demand.
  static constexpr std::size_t kKeepsAll = 0;
  static constexpr std::size_t kRenews = 1;

  std::vector<Link> links;        // one that begins with cheap values such as images is merged with the one before
  std::vector<ChainLink> chain;   // the same links as numbers
  std::vector<ValueId> beside;    // ForwardChain::beside
  std::int64_t always_bytes = 0;  // small values and those beside the chain, which every plan keeps
};

// `node_seconds` by forward node.
MeasuredChain measure_chain(const Section& section, const ForwardPass& forward, const std::vector<double>& node_seconds);

// The plan as a rewrite.
Recomputation recomputation_of(const MeasuredChain& measured, const ChainPlan& plan, const ForwardPass& forward);

// Bytes while each node of a section runs, and their peak.
std::vector<std::int64_t> bytes_by_node(const Section& section);
std::int64_t fullest_bytes(const Section& section);

}  // namespace snug
