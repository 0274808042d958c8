// One or more calls of every op, for the rules that all kernels obey.
#pragma once

#include <string>
#include <vector>

#include "support.h"

namespace snug::backends {

struct Case {
  const OpDef* op;
  std::vector<Tensor> inputs;  // real ones of the dtype asked for, row-major
  Attributes attributes = {};
  bool any_layout = true;  // false: the op demands certain layouts

  std::string name() const;
};

std::vector<Case> all_cases(DType dtype);

// The case with every input of rank 4 whose bit is set in `channels_last` moved to that layout.
Case with_layouts(const Case& original, unsigned channels_last);
// How many such choices there are.
unsigned layout_choices(const Case& original);

// The same call with one more input, the accumulator.
Case accumulating(const Case& original, const Tensor& accumulator);

std::vector<Type> inferred_types(const Case& call);

}  // namespace snug::backends
