// The forward pass of a section, and its blocks: found from the data flow alone, not from the names of layers.
#pragma once

#include <vector>

#include "ir/program.h"

namespace snug {

// The first node after the forward pass.
std::size_t end_of_forward(const Section& section);

struct ForwardPass {
  std::size_t end = 0;                 // nodes [0, end) are forward; backward follows
  std::vector<NodeId> maker;           // by value: the forward node that makes it; none for states and for what backward makes
  std::vector<bool> read_by_backward;  // by value
  // By value: far smaller than what it is made from, such as statistics. It takes few bytes to keep, and a pass over memory to
  // recompute.
  std::vector<bool> is_small;
  // By value: made cheaply from states and from other such values: images, positions, masks. It is recomputed wherever it is
  // read.
  std::vector<bool> is_free;

  bool makes(ValueId id) const { return maker[id.index()].valid(); }
};

// Transient values only: versions of states count neither as made nor as read.
ForwardPass find_forward_pass(const Section& section);

// A stretch of the forward pass between two places where few values are alive that later forward nodes read: a layer of a plain
// network, a block of a residual one, a step of a recurrent one. Small values do not count, nor do free ones where others carry
// on too.
struct Link {
  std::size_t begin = 0;  // nodes, half-open
  std::size_t end = 0;
  Bytes kept = {};                     // of its values that backward reads
  Bytes carried = {};                  // of the values that carry the forward pass on from its end
  std::vector<ValueId> carriers = {};  // those values, ascending
  bool joins_branches = false;         // it adds two values up: a residual block
};

struct ForwardChain {
  std::vector<Link> links;  // the whole forward pass, in order
  // Values that are alive across many links, such as what an encoder gives to every layer of its decoder, ascending. They are
  // kept, and no link carries them.
  std::vector<ValueId> beside;
};

// Cuts wherever a single value carries on. A stretch that is longer than any block, because it has no such places, is cut where
// up to four values carry on, not counting those that are alive across all of it.
ForwardChain find_chain(const Section& section, const ForwardPass& forward);

}  // namespace snug
