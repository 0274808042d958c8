#include "plan/explain.h"

#include <fmt/format.h>

namespace snug {

std::vector<MethodStep> explain(const FitRequest& request, const FrontierPoint& point, const Backend& backend) {
  FitRequest quiet = request;
  quiet.options.passes.dump = {};
  // What was given about the model stays; checkpointing and compression count as steps even where they were given.
  quiet.given.microbatch.reset();
  quiet.given.checkpoint.reset();
  quiet.given.compress_bits.reset();
  if (quiet.given.fuse_update == false) quiet.given.fuse_update.reset();
  quiet.given = normalized(quiet.given);
  FrontierPoint so_far = plain_point(quiet);
  Methods& methods = so_far.methods;
  Methods chosen = normalized(point.methods);
  if (chosen.fuse_update == false) chosen.fuse_update.reset();
  std::vector<MethodStep> steps;
  const auto add = [&](std::string method) {
    if (methods == chosen) {
      steps.push_back({.method = std::move(method), .planned_peak_bytes = point.planned_peak_bytes, .seconds = point.seconds});
      return;
    }
    const Plan plan = compile_point(quiet, so_far, backend);
    steps.push_back({.method = std::move(method),
                     .planned_peak_bytes = plan.planned_peak_bytes,
                     .seconds = step_seconds(request.options.costs, plan.program)});
  };
  // Takes over one method, if the plan differs in it.
  const auto take = [&](auto Methods::*method, const auto& describe) {
    if (methods.*method == chosen.*method) return;
    methods.*method = chosen.*method;
    add(describe());
  };
  add("everything at once");
  take(&Methods::precision, [] { return std::string("stored with 16 bits"); });
  take(&Methods::nonzero, [&] { return fmt::format("{:g}% of the convolutions' weights", 100 * *chosen.nonzero); });
  take(&Methods::microbatch, [&] { return fmt::format("microbatches of {}", *chosen.microbatch); });
  take(&Methods::checkpoint, [&] { return fmt::format("checkpoint {}", to_string(*chosen.checkpoint)); });
  take(&Methods::compress_bits, [&] { return fmt::format("activations kept in {} bits", *chosen.compress_bits); });
  take(&Methods::fuse_update, [] { return std::string("weights updated in backward"); });
  take(&Methods::workspace_limit, [&] { return fmt::format("workspace within {}", format_bytes(*chosen.workspace_limit)); });
  return steps;
}

}  // namespace snug
