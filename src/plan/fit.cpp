#include "plan/fit.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/process_memory.h"
#include "passes/select_kernels.h"

namespace snug {

namespace {

constexpr std::size_t kValuesNamed = 3;

// "'a' (12.85 MB), 'b' (1.20 MB) and 'c' (0.40 MB)": the largest values at the plan's peak.
std::string largest_values(const Plan& plan) {
  const PeakMoment peak = peak_moment(plan);
  std::string text;
  const std::size_t count = std::min(kValuesNamed, peak.largest.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += i + 1 == count ? " and " : ", ";
    text += fmt::format("'{}' ({})", peak.largest[i].name, format_bytes(peak.largest[i].size));
  }
  return text.empty() ? "none" : text;
}

// "a, b or c".
std::string join_with_or(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return text;
}

// The same request, for intermediate plans that are not shown.
FitRequest quiet(FitRequest request) {
  request.options.passes.dump = {};
  return request;
}

// The plan for which no budget is needed: what is given, and otherwise everything at once.
PlacedPoint plain_plan(const FitRequest& request, const Backend& backend) {
  FrontierPoint point = plain_point(request);
  Plan plan = compile_point(request, point, backend);
  point.planned_peak_bytes = plan.planned_peak_bytes;
  point.seconds = step_seconds(request.options.costs, plan.program);
  return {.point = point, .plan = std::move(plan)};
}

// What plain training with dense weights takes.
std::optional<Bytes> plain_peak_of(const FitRequest& request, const std::optional<PlacedPoint>& known, const Backend& backend) {
  const std::int64_t batch = request.options.batch;
  if (request.given.microbatch.value_or(batch) != batch) return std::nullopt;
  FitRequest plain = quiet(request);
  plain.given.nonzero.reset();
  plain.given.checkpoint.reset();
  plain.given.compress_bits.reset();
  if (known && plain_point(plain).methods == known->point.methods) return known->plan.planned_peak_bytes;
  return plain_plan(plain, backend).plan.planned_peak_bytes;
}

// By at least 1%, so that rounding does not count.
bool is_smaller(Bytes one, Bytes other) { return 100 * one.count() <= 99 * other.count(); }

// The smallest limit that the strategy can keep.
void to_the_least(Methods& methods) {
  if (methods.checkpoint->limit > Bytes(0)) methods.checkpoint->limit = Bytes(1);
}

// "add precision (about 12.44 MB) or sparse (about 9.87 MB) to --allow (about 4.10 MB with all of them)": rungs that are not
// allowed and would make the smallest plan smaller, each by itself, then together; empty when there are none. A rung that by
// itself is both larger and slower than a more exact one is named only for what it adds to that one: "(about 1.91 MB with both of
// them, about 1.62 MB with sparse too)".
std::string rungs_that_help(const FitRequest& request, const FrontierPoint& smallest, const Backend& backend) {
  FrontierPoint base = smallest;
  to_the_least(base.methods);
  // Nothing where the backend has no kernels for it, for example within a workspace limit.
  struct Outcome {
    Bytes bytes;
    double seconds;
  };
  const auto outcome_of = [&](const FrontierPoint& point) -> std::optional<Outcome> {
    try {
      const Plan plan = compile_point(quiet(request), point, backend);
      return Outcome{.bytes = plan.planned_peak_bytes, .seconds = step_seconds(request.options.costs, plan.program)};
    } catch (const UserError&) {
      return std::nullopt;
    }
  };
  std::vector<Outcome> named;
  FrontierPoint together = base;
  FrontierPoint with_beaten = base;
  std::vector<std::string> names;
  std::vector<std::string> beaten;
  const auto look_at = [&](Exactness rung, bool possible, const auto& take) {
    if (!possible || request.allowed.has(rung)) return;
    FrontierPoint point = base;
    take(point.methods);
    const std::optional<Outcome> found = outcome_of(point);
    if (!found || !is_smaller(found->bytes, smallest.planned_peak_bytes)) return;
    const bool is_beaten = std::any_of(named.begin(), named.end(), [&](const Outcome& other) {
      return other.bytes <= found->bytes && other.seconds <= found->seconds;
    });
    take(with_beaten.methods);
    if (is_beaten) {
      beaten.emplace_back(name_of(rung));
      return;
    }
    names.push_back(fmt::format("{} (about {})", name_of(rung), format_bytes(found->bytes)));
    named.push_back(*found);
    take(together.methods);
  };
  const Methods& taken = smallest.methods;
  // The narrow model's kernels need other workspaces than those that the limit was chosen for.
  const bool can_narrow = request.narrow_precision && !request.given.precision && taken.precision != request.narrow_precision;
  look_at(Exactness::precision, can_narrow, [&](Methods& methods) {
    methods.precision = request.narrow_precision;
    if (options_for(request, methods).update.looks_at_all_gradients()) methods.fuse_update = request.given.fuse_update;
    methods.workspace_limit = request.given.workspace_limit;
  });
  look_at(Exactness::compressed, !taken.compress_bits && can_compress(request, backend),
          [](Methods& methods) { methods.compress_bits = kSolverCompressBits; });
  look_at(Exactness::sparse, !taken.nonzero && can_be_sparse(request, backend), [&](Methods& methods) {
    methods.nonzero = kSolverNonzero.back();
    methods.workspace_limit = request.given.workspace_limit;
  });
  if (names.empty()) return {};
  std::string text = fmt::format("add {} to --allow", join_with_or(names));
  std::vector<std::string> combined;
  Bytes least = named.front().bytes;
  const std::optional<Outcome> all = names.size() > 1 ? outcome_of(together) : std::nullopt;
  if (all) {
    combined.push_back(fmt::format("about {} with {} of them", format_bytes(all->bytes), names.size() == 2 ? "both" : "all"));
    least = all->bytes;
  }
  const std::optional<Outcome> more = beaten.empty() ? std::nullopt : outcome_of(with_beaten);
  if (more && is_smaller(more->bytes, least))
    combined.push_back(fmt::format("about {} with {} too", format_bytes(more->bytes), fmt::join(beaten, " and ")));
  if (!combined.empty()) text += fmt::format(" ({})", fmt::join(combined, ", "));
  return text;
}

// What else would make room, each as the end of "give that much, or ...".
std::vector<std::string> ways_out(const FitRequest& request, const FrontierPoint& smallest, const Backend& backend) {
  std::vector<std::string> ways;
  const std::int64_t batch = request.options.batch;
  const bool norm = depends_on_microbatch(request);
  if (request.given.microbatch.value_or(1) > 1) ways.emplace_back("leave out --microbatch, so that a smaller one can be chosen");
  if (request.given.checkpoint) ways.emplace_back("leave out --checkpoint, so that another strategy can be chosen");
  if (!request.given.microbatch && request.given.statistics_group.value_or(0) > 1 &&
      request.allowed.has(Exactness::reassociated)) {
    ways.push_back(
        fmt::format("take statistics over smaller groups with --statistics-group (now {})", *request.given.statistics_group));
  } else if (request.given.fuse_update.value_or(false)) {
    if (batch > 1) ways.emplace_back("leave out --fuse-update, so that the batch can be split");
  } else if (!request.given.microbatch && *smallest.methods.microbatch > 1) {
    // How much it would save: the smallest plan with microbatches of one example.
    FrontierPoint single = smallest;
    single.methods.microbatch = 1;
    if (batch > 1) single.methods.fuse_update = request.given.fuse_update;
    to_the_least(single.methods);
    const Bytes bytes = compile_point(quiet(request), single, backend).planned_peak_bytes;
    if (bytes < smallest.planned_peak_bytes) {
      const Exactness rung = norm ? Exactness::microbatch : Exactness::reassociated;
      if (!request.allowed.has(rung)) {
        ways.push_back(fmt::format("add {} to --allow", name_of(rung)));
      } else if (norm && request.min_microbatch > 1) {
        ways.push_back(fmt::format("allow smaller microbatches with --min-microbatch (now {}; about {} with 1)",
                                   request.min_microbatch, format_bytes(bytes)));
      }
    }
  }
  if (std::string more = rungs_that_help(request, smallest, backend); !more.empty()) ways.push_back(std::move(more));
  if (batch > 1 && smallest.methods.microbatch == batch) ways.emplace_back("use a smaller --batch");
  if (ways.empty()) ways.emplace_back("use a smaller model");
  return ways;
}

// ", stored with 16 bits, 10% of the convolutions' weights, activations in 4 bits": the lossy methods that the solver chose.
std::string lossy_methods(const Methods& given, const Methods& taken) {
  std::string text;
  if (!given.precision && taken.precision != DType::f32) text += ", stored with 16 bits";
  if (!given.nonzero && taken.nonzero) text += fmt::format(", {:g}% of the convolutions' weights", 100 * *taken.nonzero);
  if (taken.compress_bits) text += fmt::format(", activations in {} bits", *taken.compress_bits);
  return text;
}

[[noreturn]] void refuse(const FitRequest& request, const PlacedPoint& smallest, const Backend& backend) {
  const Plan& plan = smallest.plan;
  const Bytes bytes = plan.planned_peak_bytes;
  // Where both are given, there was nothing to choose.
  std::string takes = "it takes";
  const Methods& given = request.given;
  const Methods& taken = smallest.point.methods;
  if (!given.microbatch || !given.checkpoint) {
    takes = "the smallest budget that it fits";
    if (given.microbatch) takes += fmt::format(" with --microbatch {}", *given.microbatch);
    if (given.checkpoint) takes += fmt::format(" with --checkpoint {}", to_string(*given.checkpoint));
    takes += " is";
  }
  throw DoesNotFit(
      fmt::format("{} at batch {} does not fit {}: {} {} bytes ({}), with microbatches of {} and checkpoint {}{}, where the "
                  "largest values alive are {}; give that much, or {}",
                  plan.program.name, request.options.batch, counted(request.budget->count(), "byte"), takes, bytes.count(),
                  format_bytes(bytes), *taken.microbatch, to_string(*taken.checkpoint),
                  lossy_methods(given, taken) + (taken.fuse_update.value_or(false) ? " and weights updated in backward" : ""),
                  largest_values(plan), fmt::join(ways_out(request, smallest.point, backend), ", or ")),
      bytes.count());
}

}  // namespace

namespace {

Fit fit_as_asked(const FitRequest& request, const Backend& backend) {
  const auto start = std::chrono::steady_clock::now();
  check_request(request);
  const bool open = request.given.checkpoint && leaves_limit_open(*request.given.checkpoint);
  if (open && !request.budget) {
    throw_user_error("checkpoint '{0}' fills a limit; give it one, as in {0}:24MB, or a --budget",
                     to_string(*request.given.checkpoint));
  }
  std::optional<PlacedPoint> found;
  const auto fits = [&] { return found && (!request.budget || found->plan.planned_peak_bytes <= *request.budget); };
  std::optional<Bytes> plain_peak;
  if (!request.budget) {
    found = plain_plan(request, backend);
    plain_peak = plain_peak_of(request, found, backend);
  } else {
    // Computes what was saved while the search runs.
    run_in_threads(2, backend.threads, [&](std::size_t piece) {
      if (piece == 0)
        found = run_apart([&] { return find_fastest_within(request, backend); });
      else
        plain_peak = plain_peak_of(request, std::nullopt, backend);
    });
    if (!fits()) refuse(request, *found, backend);
    if (request.options.passes.dump) found->plan = compile_point(request, found->point, backend);
    // A copy is contiguous on this thread's heap; the search's heap can then be returned as a whole.
    found = std::optional<PlacedPoint>(std::as_const(*found));
  }
  give_back_free_memory();
  found->plan.made_for = backend.made_for();
  found->plan.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {.plan = std::move(found->plan), .point = found->point, .plain_peak_bytes = plain_peak};
}

// The smallest workspace limit with which the request can be planned. Starts from what one of its programs asked for; the others
// may ask for more. The plan need not fit the budget then.
WorkspaceTooSmall with_least_limit(FitRequest request, const Backend& backend, const WorkspaceTooSmall& first) {
  const Bytes limit = *request.given.workspace_limit;
  request.options.passes.dump = {};
  WorkspaceTooSmall refusal = first;
  while (true) {
    request.given.workspace_limit = refusal.least();
    try {
      fit_as_asked(request, backend);
      return refusal;
    } catch (const DoesNotFit&) {
      return refusal;
    } catch (const WorkspaceTooSmall& larger) {
      SNUG_CHECK(larger.least() > refusal.least(), "a limit of {} bytes is not kept", refusal.least().count());
      refusal = WorkspaceTooSmall(limit, larger.least(), larger.node());
    }
  }
}

}  // namespace

Fit fit(const FitRequest& request, const Backend& backend) {
  try {
    return fit_as_asked(request, backend);
  } catch (const WorkspaceTooSmall& refusal) {
    if (!request.given.workspace_limit) throw;
    throw with_least_limit(request, backend, refusal);
  }
}

}  // namespace snug
