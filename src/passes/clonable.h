// Which nodes may run a second time, and how a second one is made. Exact: a clone has the op, constants, random keys and operands
// of its original, and so makes the same bits.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/program.h"

namespace snug {

// By node of [0, end): whether it may run again anywhere later in the section. Not so where running twice would count something
// twice, where it writes a state, and where it reads a state that the section writes later.
std::vector<bool> find_clonable_nodes(const Section& section, std::size_t end);

class Cloner {
 public:
  explicit Cloner(Section& section);

  // The node in phase `recompute`, with the original's inputs and new values, named after the old ones, for outputs. It is not
  // put into the section's list. A node that has its kernel already gives it to its clone, with workspace of the clone's own.
  Node clone(const Node& original);

 private:
  ValueId copy(ValueId original);

  Section& section_;
  std::unordered_set<std::string> names_;  // values of trial programs have none: nobody reads them
};

}  // namespace snug
