// What running a node costs, in seconds: measured on this machine, or predicted from measurements of similar nodes, or else from
// fixed rates. Passes and the solver compare plans by it; it never decides whether a plan fits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/kernel.h"
#include "ir/program.h"

namespace snug {

// One measured kind of node.
struct NodeCost {
  std::string key;     // cost_key()
  std::string family;  // cost_family()
  std::string kernel;  // what ran it
  double flops = 0;
  double bytes = 0;    // of its operands
  double seconds = 0;  // of one run

  friend bool operator==(const NodeCost&, const NodeCost&) = default;
};

struct CostTable {
  // For nodes that were never measured: the larger of arithmetic and traffic, and a little for each call. Rounded figures of two
  // desktop cores; only their ratios matter for choosing between plans. 16-bit numbers have half the bytes; the backend says how
  // much faster they are multiplied.
  double flops_per_second = 200e9;  // of floats
  double bytes_per_second = 30e9;
  double seconds_per_node = 3e-6;
  ProductSpeeds speeds = {};
  std::unordered_map<std::string, double> measured = {};  // seconds, by cost_key(), and by cost_key() and kernel

  // The same nodes for other numbers of examples, by cost_family(), and for another length, width or number of heads, by the
  // family with that size open too; each also with the kernel.
  struct Sized {
    double work = 0;  // at the fixed rates
    double seconds = 0;
  };
  std::unordered_map<std::string, std::vector<Sized>> families = {};  // by ascending work
};

// With nothing measured, on no machine in particular.
inline const CostTable kFixedCosts{};

// Nodes with the same key take the same time on one machine and backend: op, constants that shape the work, operand types. The
// kernel is not part of it, so that a node can be asked about before kernels are chosen.
std::string cost_key(const Section& section, const Node& node);
// The key with every leading dimension left open: the same for any number of examples.
std::string cost_family(const Section& section, const Node& node);

// All but the seconds.
NodeCost describe_cost(const Section& section, const Node& node);

// A table of measured nodes, or the fixed one where there are none. Its rates, for nodes unlike any of them, are those that the
// measured ones reached together, scaled by the given speeds for other precisions.
CostTable make_cost_table(std::span<const NodeCost> nodes, const ProductSpeeds& speeds = {});

// As measured with the node's kernel (any, while none is chosen); else interpolated between the nearest sizes of its family, or
// in proportion to the work beyond them; else the same from nodes that differ in one more size, such as the length of sequences;
// else from the rates.
double node_seconds(const CostTable& costs, const Section& section, const Node& node);

// Whether that is the time of the node's own kernel, measured for this or another number of examples.
bool is_measured_with_kernel(const CostTable& costs, const Section& section, const Node& node);

// Runs of `micro` in a step; the last may be partly padding, which is computed too.
std::int64_t microbatches(const Program& program);
// Of any section in a step whose microbatches all have the program's own shape.
std::int64_t runs_per_step(const Program& program, const Section& section);

// All microbatches and the update.
double step_seconds(const CostTable& costs, const Program& program);

}  // namespace snug
