#include "plan/frontier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "ops/ops.h"
#include "passes/forward_chain.h"
#include "plan/splits.h"

namespace snug {

namespace {

using Kind = CheckpointStrategy::Kind;

constexpr std::string_view kFuseUpdate = "fuse_update";

bool asks_for(const CompileOptions& options, std::string_view pass) {
  const std::vector<std::string>& enabled = options.passes.enabled;
  return std::find(enabled.begin(), enabled.end(), pass) != enabled.end();
}

// Work that a search may do, in nodes: what compiling costs is proportional to them. Small networks get every candidate; a
// network of a thousand layers gets fewer sizes and fewer placements.
constexpr std::int64_t kMostNodesCompared = 250'000;
constexpr std::int64_t kMostNodesPlaced = 60'000;
constexpr std::int64_t kMostLimits = 12;  // for each size of microbatch
constexpr int kMostHalvings = 3;          // of the room that the largest workspace takes

std::int64_t count_within(std::int64_t nodes_in_all, std::int64_t nodes_each, std::int64_t least, std::int64_t most) {
  return std::clamp(nodes_in_all / std::max<std::int64_t>(nodes_each, 1), least, most);
}

bool has_batch_norm(const Graph& graph) {
  return std::any_of(graph.forward.nodes.begin(), graph.forward.nodes.end(),
                     [](const Node& node) { return node.op->name.starts_with("batch_norm"); });
}

void apply(const FrontierPoint& point, CompileOptions& options) {
  options.checkpoint = point.checkpoint;
  options.compress_bits = point.compress_bits;
  if (point.workspace_limit) options.workspace_limit = point.workspace_limit;
  if (point.fuses_update && !asks_for(options, kFuseUpdate)) options.passes.enabled.emplace_back(kFuseUpdate);
}

// What a program without placement says about a candidate.
struct Candidate {
  FrontierPoint point;      // its bytes are what liveness demands
  Bytes largest_workspace;  // of one kernel in a step
  Bytes micro_bytes;        // of the fullest moment of forward and backward, without states
};

class Search {
 public:
  Search(const FitRequest& request, const Backend& backend) : request_(request), backend_(backend) {
    backend_.answers = std::make_shared<KernelAnswers>();
  }

  // Looks at every candidate's program; nothing is placed yet.
  void compare() {
    const std::int64_t batch = request_.options.batch;
    const Program& whole = lowered(request_.microbatch.value_or(batch));
    nodes_ = static_cast<std::int64_t>(whole.find_section(SectionKind::micro)->nodes.size());
    const std::int64_t most = count_within(kMostNodesCompared, nodes_, 24, 600);
    const std::vector<CheckpointStrategy> named = named_strategies(whole);
    const std::vector<std::int64_t> tried =
        thin_out(sizes(), static_cast<std::size_t>(std::clamp<std::int64_t>(most / 12, 3, 24)));
    const std::int64_t for_each = most / static_cast<std::int64_t>(tried.size());
    const std::int64_t limits = std::clamp<std::int64_t>(for_each - static_cast<std::int64_t>(named.size()), 2, kMostLimits);
    for (const std::int64_t size : tried) {
      for (const CheckpointStrategy& strategy : named)
        consider({.planned_peak_bytes = {}, .microbatch = size, .checkpoint = strategy, .workspace_limit = {}});
      if (searches_limits()) try_limits(size, limits);
    }
    if (may_compress()) try_compression();
    if (may_fuse_update()) try_fused_update();
    if (!request_.options.workspace_limit && request_.allowed.has(Exactness::reassociated)) try_less_workspace();
    sort_by_time(candidates_);
  }

  // Places what may be on the frontier, the fastest first, and hands each that is to `visit` with its plan; `wanted` ends it. A
  // point that takes as long as the one before it takes fewer bytes, and its place.
  template <typename Wanted, typename Visit>
  void place_in_order(const Wanted& wanted, const Visit& visit) {
    const double step = spacing();
    Bytes least_bound = candidates_.front().point.planned_peak_bytes;
    for (const Candidate& candidate : candidates_) least_bound = std::min(least_bound, candidate.point.planned_peak_bytes);
    std::optional<Bytes> smallest;
    for (const Candidate& candidate : candidates_) {
      const Bytes bound = candidate.point.planned_peak_bytes;
      if (smallest) {
        if (bound >= *smallest) continue;
        const bool far_enough = static_cast<double>(bound.count()) <= static_cast<double>(smallest->count()) * step;
        if (!far_enough && bound != least_bound) continue;
      }
      if (!wanted(candidate.point)) return;
      PlacedPoint found{.point = candidate.point, .plan = make_plan(candidate.point)};
      found.point.planned_peak_bytes = found.plan.planned_peak_bytes;
      if (smallest && found.point.planned_peak_bytes >= *smallest) continue;
      smallest = found.point.planned_peak_bytes;
      visit(std::move(found));
    }
  }

  std::int64_t candidates() const { return static_cast<std::int64_t>(candidates_.size()); }

 private:
  std::vector<std::int64_t> sizes() {
    const std::int64_t batch = request_.options.batch;
    if (request_.microbatch) return {*request_.microbatch};
    const bool norm = depends_on_microbatch(request_);
    if (!request_.allowed.has(norm ? Exactness::microbatch : Exactness::reassociated)) return {batch};
    if (request_.statistics_group > 0) return even_splits_in_groups(batch, request_.statistics_group);
    return even_splits(batch, norm ? std::clamp<std::int64_t>(request_.min_microbatch, 1, batch) : 1);
  }

  // Strategies that are what they are: all that fit the model, or the one that was given.
  std::vector<CheckpointStrategy> named_strategies(const Program& program) const {
    if (request_.checkpoint) {
      return leaves_limit_open(*request_.checkpoint) ? std::vector<CheckpointStrategy>{} : std::vector{*request_.checkpoint};
    }
    std::vector<CheckpointStrategy> strategies{
        {.kind = Kind::none}, {.kind = Kind::no_bn}, {.kind = Kind::sqrt}, {.kind = Kind::log}};
    const Section& micro = *program.find_section(SectionKind::micro);
    const std::vector<Link> links = find_links(micro, find_forward_pass(micro));
    const auto blocks = std::count_if(links.begin(), links.end(), [](const Link& link) { return link.joins_branches; });
    for (std::int64_t every = 1; every <= std::min<std::int64_t>(4, blocks / 2); every *= 2)
      strategies.push_back({.kind = Kind::residual_star, .every = every});
    return strategies;
  }

  bool searches_limits() const { return !request_.checkpoint || leaves_limit_open(*request_.checkpoint); }

  // The strategy that fills a limit, at limits from the most that microbatches of this size can use down to the least that they
  // need, with the same ratio between neighbours.
  void try_limits(std::int64_t size, std::int64_t count) {
    const Kind kind = request_.checkpoint ? request_.checkpoint->kind : Kind::optimal;
    const auto bytes_of = [&](const CheckpointStrategy& strategy) {
      return static_cast<double>(
          consider({.planned_peak_bytes = {}, .microbatch = size, .checkpoint = strategy, .workspace_limit = {}})
              ->micro_bytes.count());
    };
    const double most = bytes_of({.kind = Kind::none});
    const double least = bytes_of({.kind = kind, .limit = Bytes(1)});
    for (std::int64_t i = 1; i < count; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(count);
      bytes_of({.kind = kind, .limit = Bytes(static_cast<std::int64_t>(most * std::pow(least / most, share)))});
    }
  }

  const Program& lowered(std::int64_t microbatch) {
    auto found = lowered_.find(microbatch);
    if (found == lowered_.end())
      found = lowered_.emplace(microbatch, lower_model(request_.model(microbatch), backend_, request_.options)).first;
    return found->second;
  }

  Program rewritten(const FrontierPoint& point, std::vector<PassTiming>& timings, bool verifies) {
    CompileOptions options = request_.options;
    options.passes.dump = {};
    options.passes.verifies = verifies;
    apply(point, options);
    return rewrite(lowered(point.microbatch), backend_, options, timings);
  }

  Plan make_plan(const FrontierPoint& point) {
    std::vector<PassTiming> timings;
    Plan plan = place(rewritten(point, timings, true), request_.options.red_zone);
    plan.pass_timings = std::move(timings);
    return plan;
  }

  // Its program becomes a candidate, unless it is one that may not be taken. Gone when the next is considered.
  const Candidate* consider(FrontierPoint point) {
    if (point.compress_bits == 0) point.compress_bits = request_.options.compress_bits;
    std::vector<PassTiming> timings;
    const Program program = rewritten(point, timings, false);
    const std::optional<double> detour = point.workspace_limit ? seconds_of_variants(program) : 0;
    if (!detour) return nullptr;
    point.seconds = step_seconds(request_.options.costs, program) + *detour;
    point.planned_peak_bytes = arena_bound(program, request_.options.red_zone);
    Candidate candidate{.point = point, .largest_workspace = {}, .micro_bytes = {}};
    for (const Section& section : program.sections) {
      if (section.kind == SectionKind::micro)
        candidate.micro_bytes = placement::lower_bound(placement_problem(liveness(section), request_.options.red_zone));
      for (const Node& node : section.nodes) {
        if (node.workspace.valid())
          candidate.largest_workspace = std::max(candidate.largest_workspace, section.value(node.workspace).type.bytes());
      }
    }
    return &candidates_.emplace_back(candidate);
  }

  // What a step takes longer because kernels are not the backend's first choice; nothing when one of them does not say how much.
  std::optional<double> seconds_of_variants(const Program& program) const {
    double seconds = 0;
    for (const Section& section : program.sections) {
      for (const Node& node : section.nodes) {
        const NodeTypes types = types_of(section, node);
        const KernelQuery query = backend_.query(node, types);
        Accept accept;
        if (backend_.choose(query, accept)->name == node.kernel) continue;
        const KernelMatch match = backend_.find(node.kernel)->match(query);
        const double slowdown = std::get<Accept>(match).slowdown;
        if (slowdown <= 0) return std::nullopt;
        const double runs = section.kind == SectionKind::micro ? static_cast<double>(microbatches(program)) : 1;
        if (section.kind == SectionKind::micro || section.kind == SectionKind::update)
          seconds += runs * (slowdown - 1) * node_seconds(request_.options.costs, section, node);
      }
    }
    return seconds;
  }

  // By itself only in 4 bits: fewer cost accuracy, and more would never be on the frontier.
  bool may_compress() const {
    return request_.options.compress_bits == 0 && request_.allowed.has(Exactness::compressed) && can_compress(backend_);
  }

  void try_compression() {
    for (const Candidate& candidate : on_frontier()) {
      FrontierPoint point = candidate.point;
      point.compress_bits = kSolverCompressBits;
      consider(point);
    }
  }

  // Only where a step is one microbatch is a gradient whole within backward, and only without clipping is that enough.
  bool may_fuse_update() const {
    const std::int64_t batch = request_.options.batch;
    return request_.microbatch.value_or(batch) == batch && request_.options.sgd.clip_norm == 0 &&
           !asks_for(request_.options, kFuseUpdate) && !asks_for(request_.options, "drop_gradients");
  }

  void try_fused_update() {
    for (const Candidate& candidate : on_frontier()) {
      FrontierPoint point = candidate.point;
      if (point.microbatch != request_.options.batch) continue;
      point.fuses_update = true;
      consider(point);
    }
  }

  // Where bytes matter most, on the frontier of what was looked at so far: the same with less room for every kernel.
  void try_less_workspace() {
    for (const Candidate& candidate : on_frontier()) {
      if (candidate.largest_workspace == Bytes(0)) continue;
      FrontierPoint point = candidate.point;
      for (int halvings = 1; halvings <= kMostHalvings; ++halvings) {
        point.workspace_limit = Bytes(candidate.largest_workspace.count() >> static_cast<unsigned>(halvings));
        if (!all_have_kernels(point) || !consider(point)) break;
      }
    }
  }

  bool all_have_kernels(const FrontierPoint& point) {
    Backend limited = backend_;
    limited.workspace_limit = point.workspace_limit;
    const Program& program = lowered(point.microbatch);
    return std::all_of(program.sections.begin(), program.sections.end(), [&](const Section& section) {
      return std::all_of(section.nodes.begin(), section.nodes.end(), [&](const Node& node) {
        const NodeTypes types = types_of(section, node);
        Accept accept;
        return limited.choose(limited.query(node, types), accept) != nullptr;
      });
    });
  }

  // The candidates that no other beats, by their bounds.
  std::vector<Candidate> on_frontier() const {
    std::vector<Candidate> sorted = candidates_;
    sort_by_time(sorted);
    std::vector<Candidate> front;
    for (const Candidate& candidate : sorted) {
      if (front.empty() || candidate.point.planned_peak_bytes < front.back().point.planned_peak_bytes) front.push_back(candidate);
    }
    return front;
  }

  static void sort_by_time(std::vector<Candidate>& candidates) {
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.point.seconds, a.point.planned_peak_bytes) < std::pair(b.point.seconds, b.point.planned_peak_bytes);
    });
  }

  // How much smaller than the last one placed the next must be, as a factor: 1 when all that may be on the frontier can be
  // placed.
  double spacing() const {
    const std::vector<Candidate> front = on_frontier();
    const auto most = count_within(kMostNodesPlaced, nodes_, 8, 400);
    if (static_cast<std::int64_t>(front.size()) <= most) return 1;
    const auto bytes = [](const Candidate& candidate) { return static_cast<double>(candidate.point.planned_peak_bytes.count()); };
    return std::pow(bytes(front.back()) / bytes(front.front()), 1.0 / static_cast<double>(most));
  }

  const FitRequest& request_;
  Backend backend_;
  std::int64_t nodes_ = 0;  // of one microbatch's forward and backward, before any method
  std::map<std::int64_t, Program> lowered_;
  std::vector<Candidate> candidates_;
};

}  // namespace

void check_request(const FitRequest& request) {
  const std::int64_t batch = request.options.batch;
  if (batch < 1) throw_user_error("a batch of {} is not possible; use at least 1", batch);
  if (request.microbatch && (*request.microbatch < 1 || *request.microbatch > batch)) {
    throw_user_error("a microbatch of {} out of a batch of {} is not possible", *request.microbatch, batch);
  }
  if (const std::int64_t group = request.statistics_group; group != 0) {
    if (group < 1 || group > batch)
      throw_user_error("a statistics group of {} out of a batch of {} is not possible; use 1 to {}", group, batch, batch);
    const Graph model = request.model(request.microbatch.value_or(batch));
    if (!has_batch_norm(model)) {
      throw_user_error("'{}' has no batch norm whose statistics could be taken in groups; leave out --statistics-group",
                       model.name);
    }
    if (request.microbatch && *request.microbatch != batch && *request.microbatch % group != 0) {
      throw_user_error("a microbatch of {} does not split into statistics groups of {}; use a multiple of {}, or the whole batch",
                       *request.microbatch, group, group);
    }
  }
  SNUG_CHECK(request.options.checkpoint == CheckpointStrategy{}, "a request names its checkpoint strategy beside its options");
}

Frontier find_frontier(const FitRequest& request, const Backend& backend) {
  check_request(request);
  Search search(request, backend);
  search.compare();
  Frontier frontier{.points = {}, .candidates = search.candidates()};
  search.place_in_order([](const FrontierPoint&) { return true; },
                        [&](const PlacedPoint& found) {
                          std::vector<FrontierPoint>& points = frontier.points;
                          if (!points.empty() && points.back().seconds == found.point.seconds) points.pop_back();
                          points.push_back(found.point);
                        });
  std::reverse(frontier.points.begin(), frontier.points.end());
  return frontier;
}

PlacedPoint find_fastest_within(const FitRequest& request, const Backend& backend) {
  check_request(request);
  Search search(request, backend);
  search.compare();
  std::optional<PlacedPoint> best;
  const auto fits = [&](const FrontierPoint& point) { return !request.budget || point.planned_peak_bytes <= *request.budget; };
  search.place_in_order(
      [&](const FrontierPoint& next) { return !best || !fits(best->point) || next.seconds == best->point.seconds; },
      [&](PlacedPoint found) { best = std::move(found); });
  SNUG_CHECK(best, "a search for plans found none");
  return std::move(*best);
}

Plan compile_point(const FitRequest& request, const FrontierPoint& point, const Backend& backend) {
  CompileOptions options = request.options;
  apply(point, options);
  return compile(request.model(point.microbatch), backend, options);
}

bool can_compress(const Backend& backend) {
  return std::any_of(backend.kernels.begin(), backend.kernels.end(),
                     [](const KernelDef* kernel) { return kernel->op == ops::pack.name; });
}

bool leaves_limit_open(const CheckpointStrategy& strategy) {
  return (strategy.kind == CheckpointStrategy::Kind::optimal || strategy.kind == CheckpointStrategy::Kind::greedy) &&
         strategy.limit == Bytes(0);
}

bool depends_on_microbatch(const FitRequest& request) {
  return request.statistics_group == 0 && has_batch_norm(request.model(request.microbatch.value_or(request.options.batch)));
}

}  // namespace snug
