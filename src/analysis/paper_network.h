// The section `forward` as the paper accounts for it: one op per layer, what backward keeps of each, and which gradients are
// alive while it is differentiated. docs/accounting.md has the rules.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace snug::paper {

enum class Keeps : std::uint8_t {
  nothing,
  input,  // in full, even where another op keeps the same value
  bits,   // one per element: where a ReLU's result is positive
  mask,   // a dropout's, in full
};

// FLOPs are of one example; a multiply-add counts as two.
struct Op {
  std::size_t node = 0;         // in the section forward
  std::vector<ValueId> inputs;  // activations: no parameters, statistics or scalars
  ValueId output = ValueId::none();
  Keeps keeps = Keeps::nothing;
  bool in_backward = false;      // a gradient reaches its output
  bool passes_gradient = false;  // the gradient of its input is that of its output, or a part of it: no new tensor
  bool is_relu = false;
  bool renewable = false;            // a normalization, or a ReLU after one: what `no-bn` recomputes
  std::int64_t gradient_values = 0;  // alive while it is differentiated: its output's and those that wait for a skip
  std::int64_t forward_flops = 0;
  std::int64_t again_flops = 0;  // to recompute it; a normalization still has its statistics
  std::int64_t backward_flops = 0;
};

// Ops [begin, end): all paths from one value to another where there are several, and the ReLU after their sum.
struct Unit {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const Unit&, const Unit&) = default;
};

struct Network {
  std::vector<Op> ops;                              // what the loss depends on, in execution order, the loss last
  std::vector<std::int64_t> elements;               // by value
  std::vector<std::size_t> producers;               // by value: number of the op; kNoOp for the network's input
  std::vector<std::vector<std::size_t>> consumers;  // by value: numbers of ops
  static constexpr std::size_t kNoOp = static_cast<std::size_t>(-1);

  const std::vector<std::size_t>& consumers_of(ValueId value) const { return consumers[value.index()]; }
  std::int64_t elements_of(ValueId value) const { return elements[value.index()]; }
  // The op that makes it, or nullptr for the network's input.
  const Op* producer_of(ValueId value) const;
};

// UserError naming the op when the model has one without a rule.
Network network_of(const Program& model);

// The values that ops before `at` make (or that are inputs) and ops from `at` on read.
std::vector<ValueId> crossing_values(const Network& network, std::size_t at);

// Found by where a single value separates what comes before from what comes after, never by names.
std::vector<Unit> residual_units(const Network& network);

}  // namespace snug::paper
