// A strategy made concrete: which stretches of the forward pass are rerun, and inside which others.
#pragma once

#include <string_view>
#include <vector>

#include "passes/checkpoint/forward_chain.h"
#include "passes/checkpoint/strategy.h"

namespace snug {

// Regions are a tree. Region 0 is the forward pass itself, whose values exist when backward begins; any other is rerun when
// backward first reads a value of it, after the region around it. A region's last part belongs to the region itself: its backward
// follows at once, so nothing of it is computed twice.
struct Regions {
  std::vector<std::size_t> parent{0};  // of each region, always with a smaller number
  std::vector<std::size_t> of_node;    // by forward node: the innermost region it lies in

  std::size_t add(std::size_t around);
  // The innermost region around both.
  std::size_t common(std::size_t a, std::size_t b) const;
};

// UserError when the strategy asks for residual blocks and there are none in `program_name`.
Regions find_regions(const CheckpointStrategy& strategy, const std::vector<Link>& links, std::string_view program_name);

}  // namespace snug
