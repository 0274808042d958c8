// Asks an op for its output types, operands and attributes written as in the text form.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "ir/text.h"
#include "ops/ops.h"

namespace snug::ops::testing {

// A node of that op on states of those types, wrapped into a program.
inline Program call(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes) {
  std::string states;
  std::string operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    states += fmt::format("state x{} : {} input\n", i, inputs[i]);
    operands += fmt::format("{}x{}@0", i == 0 ? "" : ", ", i);
  }
  const std::string braces = attributes.empty() ? "" : "{" + attributes + "}";
  return parse_program(
      fmt::format("program t batch 1 microbatch 1\n{}section micro\n%y = {}({}) {} : f32[1] activation ; forward\n", states, op,
                  operands, braces),
      find);
}

// "f32[2x4] f32[4]", or the message of the refusal.
inline std::string infer(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes = "") {
  const Program program = call(op, inputs, attributes);
  const Node& node = program.sections[0].nodes[0];
  try {
    std::string text;
    for (const Type& type : infer_types(*node.op, {types_of(program.sections[0], node).inputs, node.attributes})) {
      text += (text.empty() ? "" : " ") + to_string(type);
    }
    return text;
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace snug::ops::testing
