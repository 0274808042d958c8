// Where gradients have to go: from the loss back to every trainable parameter, and nowhere else.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace snug {

struct GradientFlow {
  std::vector<bool> depends;  // value: a trainable parameter reaches it
  std::vector<bool> reached;  // value: it depends, and the loss depends on it
  // Node: backward runs through it, so its recipe's values are kept.
  std::vector<bool> node_active;
};

GradientFlow gradient_flow(const Graph& graph);

}  // namespace snug
