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

// Sizes that split the batch evenly, largest first: the batch itself, its half, its third, ... down to the least allowed. But for
// the batch itself they are multiples of `group`.
std::vector<std::int64_t> microbatch_sizes(std::int64_t batch, std::int64_t least, std::int64_t group) {
  const std::int64_t groups = (batch + group - 1) / group;
  std::vector<std::int64_t> sizes{batch};
  for (std::int64_t parts = 2; parts <= groups; ++parts) {
    const std::int64_t size = (groups + parts - 1) / parts * group;
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

// What a plan that is too large takes, and where.
std::string needs(const Plan& plan) {
  return fmt::format("{} bytes ({}), with microbatches of {}, where the largest value alive is {}",
                     plan.planned_peak_bytes.count(), format_bytes(plan.planned_peak_bytes), plan.program.microbatch,
                     largest_value(plan));
}

// The user chose the microbatch, so nothing smaller was looked for.
[[noreturn]] void refuse_given(const FitRequest& request, const Plan& plan) {
  throw DoesNotFit(
      fmt::format("{} at batch {} does not fit {} bytes: it takes {}; give that much, or leave out --microbatch, so that a "
                  "smaller one can be "
                  "chosen",
                  plan.program.name, request.options.batch, request.budget->count(), needs(plan)));
}

[[noreturn]] void refuse(const FitRequest& request, const Plan& smallest, bool split_further) {
  const std::string other_statistics =
      request.statistics_group > 0
          ? fmt::format("take statistics over smaller groups with --statistics-group (now {})", request.statistics_group)
          : fmt::format("allow smaller microbatches with --min-microbatch (now {})", request.min_microbatch);
  throw DoesNotFit(
      fmt::format("{} at batch {} does not fit {} bytes: the least that it can be trained in is {}; give that much, or {}",
                  smallest.program.name, request.options.batch, request.budget->count(), needs(smallest),
                  split_further ? other_statistics + ", or use a smaller --batch" : "use a smaller --batch or a smaller model"));
}

// UserError unless batch, microbatch and group go together.
void check_group(const FitRequest& request, const Graph& model) {
  const std::int64_t group = request.statistics_group;
  const std::int64_t batch = request.options.batch;
  if (group == 0) return;
  if (group < 1 || group > batch)
    throw_user_error("a statistics group of {} out of a batch of {} is not possible; use 1 to {}", group, batch, batch);
  if (!has_batch_norm(model)) {
    throw_user_error("'{}' has no batch norm whose statistics could be taken in groups; leave out --statistics-group",
                     model.name);
  }
  if (request.microbatch && *request.microbatch != batch && *request.microbatch % group != 0) {
    throw_user_error("a microbatch of {} does not split into statistics groups of {}; use a multiple of {}, or the whole batch",
                     *request.microbatch, group, group);
  }
}

}  // namespace

Fit fit(const FitRequest& request, const Backend& backend) {
  const std::int64_t batch = request.options.batch;
  if (batch < 1) throw_user_error("a batch of {} is not possible; use at least 1", batch);
  if (request.microbatch && (*request.microbatch < 1 || *request.microbatch > batch)) {
    throw_user_error("a microbatch of {} out of a batch of {} is not possible", *request.microbatch, batch);
  }
  const auto fits = [&](const Plan& plan) { return !request.budget || plan.planned_peak_bytes <= *request.budget; };

  if (request.microbatch && *request.microbatch != batch) {
    const Graph part = request.model(*request.microbatch);
    check_group(request, part);
    Plan plan = compile(part, backend, request.options);
    if (!fits(plan)) refuse_given(request, plan);
    return {.plan = std::move(plan)};
  }

  const Graph whole = request.model(batch);
  check_group(request, whole);
  const bool norm = has_batch_norm(whole);
  const std::int64_t group = std::max<std::int64_t>(1, request.statistics_group);
  const std::int64_t asked = request.statistics_group > 0 ? group : request.min_microbatch;
  const std::int64_t least = norm ? std::clamp<std::int64_t>(asked, 1, batch) : 1;
  Plan at_once = compile(whole, backend, request.options);
  const Bytes plain_peak = plain_peak_of(whole, at_once, request.options, backend);
  if (fits(at_once)) return {.plan = std::move(at_once), .plain_peak_bytes = plain_peak};
  if (request.microbatch) refuse_given(request, at_once);

  Plan smallest = std::move(at_once);
  for (const std::int64_t microbatch : microbatch_sizes(batch, least, group)) {
    if (microbatch == batch) continue;
    Plan plan = compile(request.model(microbatch), backend, request.options);
    if (fits(plan)) return {.plan = std::move(plan), .plain_peak_bytes = plain_peak};
    if (plan.planned_peak_bytes < smallest.planned_peak_bytes) smallest = std::move(plan);
  }
  refuse(request, smallest, norm && least > 1);
}

}  // namespace snug
