#include "plan/explain.h"

#include <fmt/format.h>

namespace snug {

std::vector<MethodStep> explain(const FitRequest& request, const FrontierPoint& point, const Backend& backend) {
  FitRequest quiet = request;
  quiet.options.passes.dump = {};
  quiet.options.compress_bits = 0;  // it is one of the methods, also where it was given
  std::vector<MethodStep> steps;
  FrontierPoint so_far{.planned_peak_bytes = {}, .microbatch = request.options.batch, .checkpoint = {}, .workspace_limit = {}};
  const auto add = [&](std::string method) {
    if (so_far.workspace_limit == point.workspace_limit && so_far.checkpoint == point.checkpoint &&
        so_far.microbatch == point.microbatch && so_far.compress_bits == point.compress_bits &&
        so_far.fuses_update == point.fuses_update && so_far.narrowed == point.narrowed && so_far.nonzero == point.nonzero) {
      steps.push_back({.method = std::move(method), .planned_peak_bytes = point.planned_peak_bytes, .seconds = point.seconds});
      return;
    }
    const Plan plan = compile_point(quiet, so_far, backend);
    steps.push_back({.method = std::move(method),
                     .planned_peak_bytes = plan.planned_peak_bytes,
                     .seconds = step_seconds(request.options.costs, plan.program)});
  };
  add("everything at once");
  if (point.narrowed) {
    so_far.narrowed = true;
    add("stored with 16 bits");
  }
  if (point.nonzero) {
    so_far.nonzero = point.nonzero;
    add(fmt::format("{:g}% of the convolutions' weights", 100 * *point.nonzero));
  }
  if (point.microbatch != so_far.microbatch) {
    so_far.microbatch = point.microbatch;
    add(fmt::format("microbatches of {}", point.microbatch));
  }
  if (point.checkpoint != so_far.checkpoint) {
    so_far.checkpoint = point.checkpoint;
    add(fmt::format("checkpoint {}", to_string(point.checkpoint)));
  }
  if (point.compress_bits != so_far.compress_bits) {
    so_far.compress_bits = point.compress_bits;
    add(fmt::format("activations kept in {} bits", point.compress_bits));
  }
  if (point.fuses_update) {
    so_far.fuses_update = true;
    add("weights updated in backward");
  }
  if (point.workspace_limit) {
    so_far.workspace_limit = point.workspace_limit;
    add(fmt::format("workspace within {}", format_bytes(*point.workspace_limit)));
  }
  return steps;
}

}  // namespace snug
