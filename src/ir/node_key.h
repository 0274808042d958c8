// What makes two nodes alike to kernels and to costs, as bytes to look things up by.
#pragma once

#include <span>
#include <string>

#include "ir/program.h"

namespace snug {

// Op, constants and operand types. Not text: formatting numbers would cost more than some kernels take to answer.
std::string node_key(const OpDef& op, const Attributes& attributes, std::span<const Type> inputs, std::span<const Type> outputs);

}  // namespace snug
