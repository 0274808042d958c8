// A training step that can be stopped before any node, so that a kernel is timed where the plan runs it: on the plan's own
// bytes, with the values of a real step in them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/session.h"

namespace snug::bench {

// One kernel of the step with all its occurrences: the same op, attributes, types and sharing of bytes.
struct DistinctKernel {
  std::string kernel;  // its name
  std::string shape;   // of what tells it from others of its name
  std::size_t first = 0;
  int count = 0;         // in a run of its section
  bool in_micro = true;  // runs once a microbatch, else once a step
  bool in_bf16 = false;  // multiplies values stored in bf16
  double gigaflop = 0;   // of one run
  double gigabytes = 0;  // its operands', each read or written once
};

class StepWalker {
 public:
  // The session has made at least one step.
  explicit StepWalker(train::Session& session);

  const std::vector<DistinctKernel>& distinct() const { return distinct_; }

  // Runs the step up to the node, from its beginning if it is past it.
  void go_to(std::size_t node);
  // Runs the node at which the step stands as often as wanted; its overwritten inputs come back before each run, outside of the
  // time that is returned.
  double run_seconds();

 private:
  struct Step {
    SectionKind section;
    std::size_t node;                               // in its section
    std::vector<std::span<std::byte>> overwritten;  // inputs that lie where an output does
  };
  void list(std::size_t index);
  void run(const Step& step) { executor_.run_node(step.section, step.node); }
  void restore();

  Executor& executor_;
  std::vector<Step> steps_;
  std::vector<DistinctKernel> distinct_;
  std::size_t at_ = 0;
  bool ran_ = false;                            // the node at which the step stands has run
  std::vector<std::vector<std::byte>> before_;  // what its overwritten inputs held
};

}  // namespace snug::bench
