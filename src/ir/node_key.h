// What kernels and costs depend on in a node, as bytes that serve as a key.
#pragma once

#include <span>
#include <string>

#include "ir/program.h"

namespace snug {

// Op, constants and operand types. Not text: formatting numbers would take longer than some kernels take to answer.
std::string node_key(const OpDef& op, const Attributes& attributes, std::span<const Type> inputs, std::span<const Type> outputs);

}  // namespace snug
