// What running a node costs, in seconds: measured on this machine where it was, from fixed rates elsewhere. Passes and the solver
// compare plans by it; it never decides whether a plan fits.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "ir/program.h"

namespace snug {

struct CostTable {
  // For nodes that were never measured: the larger of arithmetic and traffic, and a little for each call. Round figures of two
  // desktop cores; only their ratios matter to a choice between plans.
  double flops_per_second = 200e9;
  double bytes_per_second = 30e9;
  double seconds_per_node = 3e-6;
  std::unordered_map<std::string, double> measured = {};  // seconds, by cost_key()
};

// Nodes with the same key take the same time on one machine and backend: op, constants that shape the work, operand types. The
// kernel is not part of it, so that a node can be asked about before kernels are chosen.
std::string cost_key(const Section& section, const Node& node);

double node_seconds(const CostTable& costs, const Section& section, const Node& node);

// Runs of `micro` in a step; the last may be partly padding, which is computed all the same.
std::int64_t microbatches(const Program& program);

// All microbatches and the update.
double step_seconds(const CostTable& costs, const Program& program);

}  // namespace snug
