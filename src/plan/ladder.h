// How a plan came to be as small as it is: from the plain one, method by method.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel.h"
#include "plan/compile.h"

namespace snug {

struct Rung {
  std::string method;
  Bytes planned_peak_bytes;
  double seconds = 0;  // of a step, by CompileOptions.costs
};

// First the plain plan: the whole batch at once, everything kept, no kernel refused for its workspace, every value in bytes of
// its own. Then the methods that `options` and `plan` have, each added to those before it; the last rung is `plan`, which was
// compiled with `options` from `model` of its microbatch. Compiles the model once a rung.
std::vector<Rung> find_ladder(const std::function<Graph(std::int64_t microbatch)>& model, const CompileOptions& options,
                              const Plan& plan, const Backend& backend);

}  // namespace snug
