// Where gradients have to go: from the loss back to every trainable parameter, and nowhere else.
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

// Of the section `forward`.
GradientFlow gradient_flow(const Program& model);

}  // namespace snug
