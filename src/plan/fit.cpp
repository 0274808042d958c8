#include "plan/fit.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace snug {

namespace {

bool has_batch_norm(const Graph& graph) {
  return std::any_of(graph.forward.nodes.begin(), graph.forward.nodes.end(),
                     [](const Node& node) { return node.op->name.starts_with("batch_norm"); });
}

// Sizes that split the batch evenly, largest first: the batch itself, its half, its third, ... down to the least allowed.
std::vector<std::int64_t> microbatch_sizes(std::int64_t batch, std::int64_t least) {
  std::vector<std::int64_t> sizes{batch};
  for (std::int64_t parts = 2; parts <= batch; ++parts) {
    const std::int64_t size = (batch + parts - 1) / parts;
    if (size < least) break;
    if (size < sizes.back()) sizes.push_back(size);
  }
  return sizes;
}

// "layer1.0.conv1 (12.85 MB)": what is largest where the plan is fullest.
std::string largest_value(const Plan& plan) {
  const PeakMoment peak = peak_moment(plan);
  if (peak.largest.empty()) return "nothing";
  return fmt::format("'{}' ({})", peak.largest.front().name, format_bytes(peak.largest.front().size));
}

// What the whole batch takes without recomputation.
Bytes plain_peak_of(const Graph& whole, const Plan& at_once, CompileOptions options, const Backend& backend) {
  if (options.checkpoint == CheckpointStrategy{}) return at_once.planned_peak_bytes;
  options.checkpoint = {};
  options.passes.dump = {};
  return compile(whole, backend, options).planned_peak_bytes;
}

[[noreturn]] void refuse(const FitRequest& request, const Plan& smallest, std::int64_t least, bool norm) {
  const std::int64_t batch = request.options.batch;
  std::string way_out = "use a smaller --batch or a smaller model";
  if (request.microbatch && *request.microbatch > least) {
    way_out = "leave out --microbatch, so that a smaller one can be chosen";
  } else if (norm && least > 1) {
    way_out = fmt::format("allow smaller microbatches with --min-microbatch (now {}), or use a smaller --batch", least);
  }
  throw DoesNotFit(
      fmt::format("{} at batch {} does not fit {} bytes: the least that it can be trained in is {} bytes ({}), with microbatches "
                  "of {}, where "
                  "the largest value alive is {}; give that much, or {}",
                  smallest.program.name, batch, request.budget->count(), smallest.planned_peak_bytes.count(),
                  format_bytes(smallest.planned_peak_bytes), smallest.program.microbatch, largest_value(smallest), way_out));
}

}  // namespace

Fit fit(const FitRequest& request, const Backend& backend) {
  const std::int64_t batch = request.options.batch;
  if (batch < 1) throw_user_error("a batch of {} is not possible; use at least 1", batch);
  if (request.microbatch && (*request.microbatch < 1 || *request.microbatch > batch)) {
    throw_user_error("a microbatch of {} out of a batch of {} is not possible", *request.microbatch, batch);
  }
  const auto fits = [&](const Plan& plan) { return !request.budget || plan.planned_peak_bytes <= *request.budget; };
  const auto least_of = [&](bool norm) { return norm ? std::clamp<std::int64_t>(request.min_microbatch, 1, batch) : 1; };

  if (request.microbatch && *request.microbatch != batch) {
    const Graph graph = request.model(*request.microbatch);
    Plan plan = compile(graph, backend, request.options);
    if (!fits(plan)) refuse(request, plan, least_of(has_batch_norm(graph)), has_batch_norm(graph));
    return {.plan = std::move(plan)};
  }

  const Graph whole = request.model(batch);
  const bool norm = has_batch_norm(whole);
  const std::int64_t least = least_of(norm);
  Plan at_once = compile(whole, backend, request.options);
  const Bytes plain_peak = plain_peak_of(whole, at_once, request.options, backend);
  if (fits(at_once)) return {.plan = std::move(at_once), .plain_peak_bytes = plain_peak};
  if (request.microbatch) refuse(request, at_once, least, norm);

  Plan smallest = std::move(at_once);
  for (const std::int64_t microbatch : microbatch_sizes(batch, least)) {
    if (microbatch == batch) continue;
    Plan plan = compile(request.model(microbatch), backend, request.options);
    if (fits(plan)) return {.plan = std::move(plan), .plain_peak_bytes = plain_peak};
    if (plan.planned_peak_bytes < smallest.planned_peak_bytes) smallest = std::move(plan);
  }
  refuse(request, smallest, least, norm);
}

}  // namespace snug
