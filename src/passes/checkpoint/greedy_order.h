// The planner behind `greedy`, a pure problem: numbers in, an order of nodes out. See greedy.h for the rule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace snug {

using Index = std::uint32_t;  // of a value or a node

struct OrderProblem {
  struct Value {
    Bytes bytes = {};
    Index maker = 0;
    bool may_leave = false;  // before its last read, to be recomputed
  };
  // The output lies in the input's bytes if the input is not needed after the node.
  struct Gift {
    Index output = 0;
    Index input = 0;
  };
  struct Node {
    std::vector<Index> inputs = {};  // each once
    std::vector<Index> outputs = {};
    std::vector<Gift> gifts = {};  // in order of preference
    Bytes workspace = {};
    double seconds = 0;
    bool may_repeat = false;
  };
  std::vector<Value> values;
  std::vector<Node> nodes;  // in order: a node reads what earlier nodes made
};

// A node runs at its first place in the list and is recomputed at any other. An input is what was made last.
struct GreedyOrder {
  std::vector<Index> nodes;
  Bytes peak = {};  // of what is in memory while a node runs
};

// Nothing when the limit cannot be kept.
std::optional<GreedyOrder> order_greedily(const OrderProblem& problem, Bytes limit);

}  // namespace snug
