// The forward pass of a section, and its blocks: found from the data flow alone, whatever layers are called.
#pragma once

#include <vector>

#include "ir/program.h"

namespace snug {

struct ForwardPass {
  std::size_t end = 0;                 // nodes [0, end) are forward; backward follows
  std::vector<NodeId> maker;           // by value: the forward node that makes it; none for states and for what backward makes
  std::vector<bool> read_by_backward;  // by value
  // By value: far smaller than what it is made from, such as statistics. It costs next to nothing to keep, and a pass over memory
  // to make again.
  std::vector<bool> is_small;

  bool makes(ValueId id) const { return maker[id.index()].valid(); }
};

// Transient values only: versions of states count neither as made nor as read.
ForwardPass find_forward_pass(const Section& section);

// A stretch of the forward pass between two places where a single value, or none, is alive that later forward nodes read (small
// ones left aside): a layer of a plain network, a block of a residual one.
struct Link {
  std::size_t begin = 0;  // nodes, half-open
  std::size_t end = 0;
  Bytes kept = {};                    // of its values that backward reads
  Bytes carried = {};                 // of the value that alone carries the forward pass on from its end
  ValueId carrier = ValueId::none();  // that value
  bool joins_branches = false;        // it adds two values up: a residual block
};

// The whole forward pass as links, in order.
std::vector<Link> find_links(const Section& section, const ForwardPass& forward);

}  // namespace snug
