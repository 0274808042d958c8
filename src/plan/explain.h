// Why a plan is as large and as slow as it is: what each of its methods adds.
#pragma once

#include <string>
#include <vector>

#include "plan/frontier.h"

namespace snug {

// The plan so far: each step adds one method to the one before, the last is the chosen plan.
struct MethodStep {
  std::string method;  // "everything at once", "microbatches of 25", "checkpoint sqrt", ...
  Bytes planned_peak_bytes;
  double seconds = 0;  // of a training step
};

// Starts from the plain plan and adds what the solver changed in the model (16 bits,
// part of the weights), then, in order of importance, microbatches, checkpointing,
// activations in few bits, the update in backward, less workspace. Only those that the point has.
std::vector<MethodStep> explain(const FitRequest& request, const FrontierPoint& point, const Backend& backend);

}  // namespace snug
