// Pass tests as text: the nodes before, the nodes after.
#pragma once

#include <string>
#include <string_view>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "passes/pass.h"
#include "support/accepting_backend.h"

namespace snug::testing {

constexpr std::string_view kStates =
    "program test batch 2 microbatch 2\n"
    "state scalars : u8[64] scalar\n"
    "state metrics : f64[3] scalar\n"
    "state images : u8[2x3x8x8] input\n"
    "state x : f32[2x4] input\n"
    "state w : f32[4x4] parameter trainable\n"
    "state w.grad : f32[4x4] gradient of w\n"
    "state b : f32[4] parameter trainable\n"
    "state b.grad : f32[4] gradient of b\n"
    "section micro\n";

inline Program program_of(std::string_view nodes) {
  Program program = parse_program(std::string(kStates) + std::string(nodes), ops::find);
  verify(program, "in the test's own text");
  return program;
}

// The nodes of the section, as they are written in these tests.
inline std::string nodes_of(const Program& program) {
  const std::string text = print(program);
  const std::string nodes = text.substr(text.find("section micro\n") + std::string("section micro\n").size());
  std::string result;
  for (std::size_t at = 0; at < nodes.size();) {
    const std::size_t end = nodes.find('\n', at) + 1;
    result += nodes.substr(at + 2, end - at - 2);  // without the indentation
    at = end;
  }
  return result;
}

using PassFunction = Program (*)(Program, const PassContext&);

// Runs the pass on the nodes and verifies what it made.
inline std::string after(PassFunction pass, std::string_view nodes, const AcceptingOptions& options = {}) {
  const AcceptingBackend backend(options);
  const Program program = pass(program_of(nodes), {.backend = backend});
  verify(program, "after the pass");
  return nodes_of(program);
}

}  // namespace snug::testing
