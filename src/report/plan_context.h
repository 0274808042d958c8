// Facts about a plan's use that are not in the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "report/reference_kernels.h"

namespace snug::report {

struct PlanContext {
  std::optional<Bytes> budget = {};
  std::string backend = "reference";
  int threads = 1;
  std::optional<double> predicted_step_seconds = {};
  std::string costs = "fixed table";                  // what that was predicted from
  std::vector<ReferenceNode> reference_kernels = {};  // reference_kernels() of the plan and the backend that runs it
};

}  // namespace snug::report
