// Logits for tests. A program keeps no logits: they die inside the evaluation section. But a value of a section can be made a
// version of a state, and then its bytes outlive the section, without an op, a copy or support by the runtime.
//
//   %logits = linear(...)                              ->   logits@1 = linear(...)
//   ... = softmax_cross_entropy(%logits, ...)                ... = softmax_cross_entropy(logits@1, ...)
#pragma once

#include <algorithm>

#include "base/error.h"
#include "plan/compile.h"

namespace snug {

inline Plan keep_logits(const Plan& plan) {
  Program program = plan.program;
  const auto eval = std::find_if(program.sections.begin(), program.sections.end(),
                                 [](const Section& section) { return section.kind == SectionKind::eval; });
  SNUG_CHECK(eval != program.sections.end(), "the program has no evaluation");
  const auto loss = std::find_if(eval->nodes.begin(), eval->nodes.end(),
                                 [](const Node& node) { return node.op->name == "softmax_cross_entropy"; });
  SNUG_CHECK(loss != eval->nodes.end(), "the evaluation has no softmax cross-entropy");
  Value& logits = eval->value(loss->inputs[0]);
  SNUG_CHECK(!logits.is_state() && !logits.shares.valid(), "the logits lie in another value's bytes");
  program.states.push_back({.name = "logits", .type = logits.type, .role = Role::activation});
  logits.name = "logits";
  logits.role = Role::activation;
  logits.state = StateId(program.states.size() - 1);
  logits.version = 1;
  return place(std::move(program));
}

}  // namespace snug
