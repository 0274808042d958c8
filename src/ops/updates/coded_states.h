// Optimizer states that are kept in few bits, for the rules that have some: which parameters', and what the states are.
#pragma once

#include <cstdint>
#include <string>

#include "ir/type.h"

namespace snug::ops {

// Parameters with fewer elements (of normalization, biases) keep their states unquantized: they take few bytes and are sensitive.
inline constexpr std::int64_t kLeastQuantizedElements = 4096;
inline bool is_worth_quantizing(const Type& parameter) { return parameter.elements() >= kLeastQuantizedElements; }

// The codes (ops/updates/block_code.h) of one state of a weight: for every element that it stores, padding of its layout
// included.
Type codes_type(const Type& weight);
// Codes and scales follow the order of the weight's elements in memory. It is part of their states' names, so that a snapshot in
// another order is not mistaken for this one: empty, or a point and the order.
std::string order_suffix(const Layout& layout);

}  // namespace snug::ops
