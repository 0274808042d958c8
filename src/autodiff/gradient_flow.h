// Where gradients are needed: on paths from the loss back to trainable parameters, and nowhere else.
#pragma once

#include <vector>

#include "ir/program.h"

namespace snug {

struct GradientFlow {
  std::vector<bool> depends;  // value: a trainable parameter reaches it
  std::vector<bool> reached;  // value: it depends, and the loss depends on it
  // Node: backward runs through it, so its recipe's values are kept.
  std::vector<bool> node_active;
};

// Of a section `forward`.
GradientFlow gradient_flow(const std::vector<State>& states, const Section& forward);

}  // namespace snug
