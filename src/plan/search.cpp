#include "plan/search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/parallel.h"
#include "ops/ops.h"
#include "passes/checkpoint/forward_chain.h"
#include "passes/checkpoint/optimal.h"
#include "plan/candidates.h"
#include "plan/even_splits.h"
#include "plan/lowered_model.h"

namespace snug {

namespace {

using Kind = CheckpointStrategy::Kind;

// How much work a search may do, in nodes, to which the cost of compiling is proportional. Small networks get every candidate; a
// network of a thousand layers gets fewer sizes and fewer placements.
constexpr std::int64_t kMostNodesCompared = 250'000;
constexpr std::int64_t kMostNodesPlaced = 60'000;
constexpr std::int64_t kManyCandidates =
    24;                                   // where there may be fewer, only those that are most often on the frontier are tried
constexpr std::int64_t kMostLimits = 12;  // for each size of microbatch
constexpr std::int64_t kFewLimits = 6;    // where there may be fewer candidates
constexpr unsigned kMostHalvings = 3;     // of the room that the largest workspace takes

std::int64_t count_within(std::int64_t nodes_in_all, std::int64_t nodes_each, std::int64_t least, std::int64_t most) {
  return std::clamp(nodes_in_all / std::max<std::int64_t>(nodes_each, 1), least, most);
}

class Search {
 public:
  Search(const FitRequest& request, const Backend& backend)
      : request_(request), backend_(backend), programs_(request_, backend_) {
    backend_.answers = std::make_shared<KernelAnswers>();
  }

  // Compiles every candidate's program; nothing is placed yet.
  void compare() {
    const std::int64_t batch = request_.options.batch;
    const Section& whole = *programs_.nameless(request_.given.microbatch.value_or(batch)).find_section(SectionKind::micro);
    nodes_ = static_cast<std::int64_t>(whole.nodes.size());
    const ForwardChain chain = find_chain(whole, find_forward_pass(whole));
    const std::int64_t most = count_within(kMostNodesCompared, nodes_, 8, 600);
    const bool tries_many = most >= kManyCandidates;
    const std::vector<CheckpointStrategy> named = named_strategies(chain.links, tries_many);
    const std::vector<Kind> fillers = limit_fillers(chain);
    const std::vector<std::int64_t> tried =
        thin_out(sizes(), static_cast<std::size_t>(std::clamp<std::int64_t>(most / 12, 2, 24)));
    const std::int64_t for_each = most / static_cast<std::int64_t>(tried.size());
    const std::int64_t left = for_each - static_cast<std::int64_t>(named.size());
    const std::int64_t limits = std::clamp<std::int64_t>(
        left / std::max<std::int64_t>(static_cast<std::int64_t>(fillers.size()), 1), 2, tries_many ? kMostLimits : kFewLimits);
    for (const std::int64_t size : tried) {
      // Where not all can be tried: the update in backward costs no time and is smaller.
      const bool fuses = !tries_many && may_fuse_update() && size == batch;
      std::vector<FrontierPoint> points;
      points.reserve(named.size());
      for (const CheckpointStrategy& strategy : named) points.push_back(point_of(size, strategy, fuses));
      consider_all(points);
      for (const Kind filler : fillers) try_limits(size, filler, limits, fuses);
    }
    if (may_compress()) try_compression(tries_many);
    if (tries_many && may_fuse_update()) try_fused_update();
    if (!request_.given.workspace_limit && request_.allowed.has(Exactness::reassociated)) try_less_workspace(tries_many);
    sort_by_time(candidates_);
  }

  // Places what may be on the frontier, the fastest first: a candidate is on it if its arena is smaller than all before it. A
  // point that takes as long as the one before it replaces it, since it takes fewer bytes.
  std::vector<FrontierPoint> place_all() {
    std::vector<FrontierPoint> points;
    std::optional<Bytes> smallest;
    for (const Candidate& candidate : to_place()) {
      if (smallest && candidate.point.planned_peak_bytes >= *smallest) continue;
      const PlacedPoint found = placed(candidate);
      if (smallest && found.point.planned_peak_bytes >= *smallest) continue;
      smallest = found.point.planned_peak_bytes;
      if (!points.empty() && points.back().seconds == found.point.seconds) points.pop_back();
      points.push_back(found.point);
    }
    return points;
  }

  // The plan for which no budget is needed, if it fits.
  std::optional<PlacedPoint> place_plain_within(Bytes budget) {
    const FrontierPoint point = plain_point(request_);
    const std::optional<Candidate> plain = look_at(point, programs_.named(*point.methods.microbatch));
    if (plain->point.planned_peak_bytes > budget) return std::nullopt;
    PlacedPoint found = placed(*plain);
    return found.point.planned_peak_bytes > budget ? std::nullopt : std::optional(std::move(found));
  }

  // The fastest point of place_all() within the budget, if any; what cannot fit is not placed.
  std::optional<PlacedPoint> place_fastest_within(Bytes budget) {
    std::optional<PlacedPoint> best;
    for (const Candidate& candidate : to_place()) {
      if (best && candidate.point.seconds > best->point.seconds) break;
      if (candidate.point.planned_peak_bytes > (best ? best->point.planned_peak_bytes : budget)) continue;
      PlacedPoint found = placed(candidate);
      const Bytes bytes = found.point.planned_peak_bytes;
      if (best ? bytes < best->point.planned_peak_bytes : bytes <= budget) best = std::move(found);
    }
    return best;
  }

  // The smallest point of place_all().
  PlacedPoint place_smallest() {
    std::vector<Candidate> by_bytes = to_place();
    std::stable_sort(by_bytes.begin(), by_bytes.end(), [](const Candidate& a, const Candidate& b) {
      return a.point.planned_peak_bytes < b.point.planned_peak_bytes;
    });
    std::optional<PlacedPoint> best;
    for (const Candidate& candidate : by_bytes) {
      if (best && candidate.point.planned_peak_bytes > best->point.planned_peak_bytes) break;
      PlacedPoint found = placed(candidate);
      const auto rank = [](const PlacedPoint& point) { return std::pair(point.point.planned_peak_bytes, point.point.seconds); };
      if (!best || rank(found) < rank(*best)) best = std::move(found);
    }
    SNUG_CHECK(best, "a search for plans found none");
    return std::move(*best);
  }

  // No plan takes fewer bytes: the states of the smallest microbatch and the largest value that one of its forward nodes reads.
  // Where gradients die in backward they are not states, but then the whole batch is one microbatch.
  Bytes floor() {
    const std::vector<std::int64_t> possible = sizes();
    const bool has_gradients = !request_.given.fuse_update.value_or(false) && !request_.given.drop_gradients.value_or(false);
    const Bytes least = floor_of(possible.back(), has_gradients);
    return may_fuse_update() ? std::min(least, floor_of(possible.front(), false)) : least;
  }

  std::vector<FrontierPoint> considered() const {
    std::vector<FrontierPoint> points;
    points.reserve(candidates_.size());
    for (const Candidate& candidate : candidates_) points.push_back(candidate.point);
    return points;
  }

 private:
  Bytes floor_of(std::int64_t size, bool has_gradients) {
    const Program& program = programs_.nameless(size);
    Bytes states;
    for (const State& state : program.states) {
      if (has_gradients || state.role != Role::gradient) states += state.type.bytes();
    }
    const Section& micro = *program.find_section(SectionKind::micro);
    Bytes largest;
    for (const Node& node : micro.nodes) {
      if (node.phase != Phase::forward) continue;
      for (const ValueId id : node.inputs) {
        if (!micro.value(id).is_state()) largest = std::max(largest, micro.value(id).type.bytes());
      }
    }
    return states + largest;
  }

  std::vector<std::int64_t> sizes() {
    const std::int64_t batch = request_.options.batch;
    if (request_.given.microbatch) return {*request_.given.microbatch};
    if (request_.given.fuse_update.value_or(false)) return {batch};  // a gradient is complete in backward only then
    const bool norm = depends_on_microbatch(request_);
    if (!request_.allowed.has(norm ? Exactness::microbatch : Exactness::reassociated)) return {batch};
    if (const auto group = request_.given.statistics_group) return even_splits_in_groups(batch, *group);
    return even_splits(batch, norm ? std::clamp<std::int64_t>(request_.min_microbatch, 1, batch) : 1);
  }

  // Strategies without a limit: all that fit the model, or the one that was given.
  std::vector<CheckpointStrategy> named_strategies(const std::vector<Link>& links, bool tries_many) const {
    if (request_.given.checkpoint) {
      return leaves_limit_open(*request_.given.checkpoint) ? std::vector<CheckpointStrategy>{}
                                                           : std::vector{*request_.given.checkpoint};
    }
    if (leaves_out(request_, "checkpoint")) return {{.kind = Kind::none}};
    if (!tries_many) return {{.kind = Kind::none}, {.kind = Kind::no_bn}};
    std::vector<CheckpointStrategy> strategies{
        {.kind = Kind::none}, {.kind = Kind::no_bn}, {.kind = Kind::sqrt}, {.kind = Kind::log}};
    const auto blocks = std::count_if(links.begin(), links.end(), [](const Link& link) { return link.joins_branches; });
    for (std::int64_t every = 1; every <= std::min<std::int64_t>(4, blocks / 2); every *= 2)
      strategies.push_back({.kind = Kind::residual_star, .every = every});
    return strategies;
  }

  // The strategies that fill a limit: the chain program over its links, and greedy recomputation of single values where one
  // stretch without a cut keeps most of the bytes, so that the chain program has little to choose from.
  std::vector<Kind> limit_fillers(const ForwardChain& chain) const {
    if (request_.given.checkpoint)
      return leaves_limit_open(*request_.given.checkpoint) ? std::vector{request_.given.checkpoint->kind} : std::vector<Kind>{};
    if (leaves_out(request_, "checkpoint")) return {};
    Bytes kept, most;
    bool is_simple = chain.beside.empty();
    for (const Link& link : chain.links) {
      kept += link.kept;
      most = std::max(most, link.kept);
      is_simple = is_simple && link.carriers.size() <= 1;
    }
    return most.count() > kept.count() / 2 || !is_simple ? std::vector{Kind::optimal, Kind::greedy} : std::vector{Kind::optimal};
  }

  // The strategy that fills a limit, at limits from the most that microbatches of this size can use down to the smallest that
  // they need, with the same ratio between neighbors.
  void try_limits(std::int64_t size, Kind kind, std::int64_t count, bool fuses) {
    const auto bytes_of = [&](const FrontierPoint& point) {
      return static_cast<double>(consider_all({point}).front()->micro_bytes.count());
    };
    const auto everything = std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
      return candidate.point.methods.microbatch == size && candidate.point.methods.checkpoint == CheckpointStrategy{};
    });
    const double most = everything != candidates_.end() ? static_cast<double>(everything->micro_bytes.count())
                                                        : bytes_of(point_of(size, {.kind = Kind::none}, fuses));
    const double least = bytes_of(point_of(size, {.kind = kind, .limit = Bytes(1)}, fuses));
    std::vector<FrontierPoint> between;
    between.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 1; i < count; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(count);
      const Bytes limit(static_cast<std::int64_t>(most * std::pow(least / most, share)));
      between.push_back(point_of(size, {.kind = kind, .limit = limit}, fuses));
    }
    consider_all(between);
  }

  FrontierPoint point_of(std::int64_t size, const CheckpointStrategy& strategy, bool fuses) const {
    FrontierPoint point{.methods = request_.given};
    point.methods.microbatch = size;
    point.methods.checkpoint = strategy;
    if (fuses) point.methods.fuse_update = true;
    return point;
  }

  // The options that compile a point's program; programs that are only compared need no verification.
  CompileOptions searching(const FrontierPoint& point, bool verifies) {
    CompileOptions options = options_for(request_, point.methods);
    options.passes.dump = {};
    options.passes.verifies = verifies;
    options.optimal_answers = &optimal_answers_;
    return options;
  }

  Plan make_plan(const FrontierPoint& point) {
    const CompileOptions options = searching(point, true);
    std::vector<PassTiming> timings;
    const Program& program = programs_.named(*point.methods.microbatch);
    Plan plan = place(rewrite(program, backend_, options, timings), request_.options.red_zone);
    plan.methods = complete(point.methods, plan.program);
    plan.pass_timings = std::move(timings);
    return plan;
  }

  // Compiles the points' programs into candidates; one that may not be used is nothing in the result. Goes through one microbatch
  // size after another, with the backend's number of threads for each; the result has the order of the points.
  std::vector<std::optional<Candidate>> consider_all(const std::vector<FrontierPoint>& points) {
    std::vector<std::optional<Candidate>> found(points.size());
    std::vector<bool> is_done(points.size(), false);
    for (std::size_t first = 0; first < points.size(); ++first) {
      if (is_done[first]) continue;
      std::vector<std::size_t> alike;
      for (std::size_t i = first; i < points.size(); ++i) {
        if (points[i].methods.microbatch != points[first].methods.microbatch) continue;
        alike.push_back(i);
        is_done[i] = true;
      }
      const Program& program = programs_.nameless(*points[first].methods.microbatch);
      run_in_threads(alike.size(), backend_.threads,
                     [&](std::size_t i) { found[alike[i]] = look_at(points[alike[i]], program); });
    }
    for (const std::optional<Candidate>& candidate : found) {
      if (candidate) candidates_.push_back(*candidate);
    }
    return found;
  }

  std::optional<Candidate> look_at(FrontierPoint point, const Program& lowered) {
    // A limit that was given is obeyed, and refused where nothing keeps it.
    const auto limit = request_.given.workspace_limit ? std::nullopt : point.methods.workspace_limit;
    if (limit && !all_have_kernels(lowered, *limit)) return std::nullopt;
    const CompileOptions options = searching(point, false);
    std::vector<PassTiming> timings;
    const Program program = rewrite(lowered, backend_, options, timings);
    const std::optional<double> detour = limit ? seconds_of_variants(program) : 0;
    if (!detour) return std::nullopt;
    point.seconds = step_seconds(request_.options.costs, program) + *detour;
    point.planned_peak_bytes = arena_bound(program, request_.options.red_zone);
    Candidate candidate{.point = point, .largest_workspace = {}, .micro_bytes = {}};
    for (const Section& section : program.sections) {
      if (section.kind == SectionKind::micro)
        candidate.micro_bytes =
            placement::lower_bound(placement_problem(liveness(section), MemorySpace::device, request_.options.red_zone));
      for (const Node& node : section.nodes) {
        if (node.workspace.valid())
          candidate.largest_workspace = std::max(candidate.largest_workspace, section.value(node.workspace).type.bytes());
      }
    }
    return candidate;
  }

  // How much longer a step takes because kernels are not the backend's first choice, where their own time is not known; nothing
  // when one of them does not say how much.
  std::optional<double> seconds_of_variants(const Program& program) const {
    double seconds = 0;
    for (const Section& section : program.sections) {
      for (const Node& node : section.nodes) {
        const NodeTypes types = types_of(section, node);
        const KernelQuery query = backend_.query(node, types);
        Accept accept;
        if (backend_.choose(query, accept)->name == node.kernel) continue;
        const KernelMatch match = backend_.find(node.kernel)->answer(query);
        const double slowdown = std::get<Accept>(match).slowdown;
        if (slowdown <= 0) return std::nullopt;
        if (is_measured_with_kernel(request_.options.costs, section, node)) continue;
        const auto runs = static_cast<double>(runs_per_step(program, section));
        if (runs > 0) seconds += runs * (slowdown - 1) * node_seconds(request_.options.costs, section, node);
      }
    }
    return seconds;
  }

  // Unless a width is given, only 4 bits: fewer cost accuracy, and more would never be on the frontier.
  bool may_compress() const {
    return !request_.given.compress_bits && request_.allowed.has(Exactness::compressed) && can_compress(request_, backend_);
  }

  void try_compression(bool tries_many) {
    std::vector<Candidate> front = on_frontier(candidates_);
    if (!tries_many) front.erase(front.begin(), front.end() - 1);
    std::vector<FrontierPoint> points;
    for (const Candidate& candidate : front) {
      points.push_back(candidate.point);
      points.back().methods.compress_bits = kSolverCompressBits;
    }
    consider_all(points);
  }

  // A gradient is complete within backward only where a step is one microbatch, and its update can run there only where no
  // gradient has to wait for the others.
  bool may_fuse_update() const {
    const std::int64_t batch = request_.options.batch;
    return request_.given.microbatch.value_or(batch) == batch &&
           !options_for(request_, request_.given).update.looks_at_all_gradients() && !request_.given.fuse_update &&
           !request_.given.drop_gradients.value_or(false) && !leaves_out(request_, "fuse_update");
  }

  void try_fused_update() {
    std::vector<FrontierPoint> points;
    for (const Candidate& candidate : on_frontier(candidates_)) {
      if (candidate.point.methods.microbatch != request_.options.batch) continue;
      points.push_back(candidate.point);
      points.back().methods.fuse_update = true;
    }
    consider_all(points);
  }

  // Tries the points on the frontier so far, or only its smallest, with less workspace for every kernel, where bytes matter most:
  // half of what the largest takes, a quarter, ... A limit that was kept to already would give the same plan again.
  void try_less_workspace(bool tries_many) {
    std::vector<Candidate> front = on_frontier(candidates_);
    if (!tries_many) front.erase(front.begin(), front.end() - 1);
    std::vector<Bytes> largest(front.size());  // under the last limit that was tried
    std::ranges::transform(front, largest.begin(), &Candidate::largest_workspace);
    for (unsigned halvings = 1; halvings <= kMostHalvings; ++halvings) {
      std::vector<FrontierPoint> points;
      std::vector<std::size_t> of_candidate;
      for (std::size_t i = 0; i < front.size(); ++i) {
        const Bytes limit(front[i].largest_workspace.count() >> halvings);
        if (largest[i] <= limit) continue;
        points.push_back(front[i].point);
        points.back().methods.workspace_limit = limit;
        of_candidate.push_back(i);
      }
      const std::vector<std::optional<Candidate>> found = consider_all(points);
      for (std::size_t i = 0; i < found.size(); ++i) {
        // Where kernels are missing, they are with less.
        largest[of_candidate[i]] = found[i] ? found[i]->largest_workspace : Bytes(0);
      }
    }
  }

  bool all_have_kernels(const Program& program, Bytes workspace_limit) const {
    Backend limited = backend_;
    limited.workspace_limit = workspace_limit;
    return std::all_of(program.sections.begin(), program.sections.end(), [&](const Section& section) {
      return std::all_of(section.nodes.begin(), section.nodes.end(), [&](const Node& node) {
        const NodeTypes types = types_of(section, node);
        Accept accept;
        return limited.choose(limited.query(node, types), accept) != nullptr;
      });
    });
  }

  std::vector<Candidate> to_place() const { return worth_placing(candidates_, count_within(kMostNodesPlaced, nodes_, 8, 400)); }

  PlacedPoint placed(const Candidate& candidate) {
    PlacedPoint found{.point = candidate.point, .plan = make_plan(candidate.point)};
    found.point.planned_peak_bytes = found.plan.planned_peak_bytes;
    return found;
  }

  const FitRequest& request_;
  OptimalAnswers optimal_answers_;
  Backend backend_;
  LoweredModel programs_;
  std::int64_t nodes_ = 0;  // of one microbatch's forward and backward, before any method
  std::vector<Candidate> candidates_;
};

}  // namespace

Frontier search_frontier(const FitRequest& request, const Backend& backend) {
  Search search(request, backend);
  search.compare();
  Frontier frontier{.points = search.place_all(), .considered = search.considered()};
  std::reverse(frontier.points.begin(), frontier.points.end());
  return frontier;
}

PlacedPoint search_fastest_within(const FitRequest& request, const Backend& backend) {
  SNUG_CHECK(request.budget, "a search for what fits a budget needs one");
  Search search(request, backend);
  // By fixed rates nothing is faster than plain training. By measured ones, smaller microbatches may be.
  const bool plain_is_fastest =
      request.options.costs.measured.empty() && !(request.given.checkpoint && leaves_limit_open(*request.given.checkpoint));
  if (plain_is_fastest) {
    if (std::optional<PlacedPoint> plain = search.place_plain_within(*request.budget)) return std::move(*plain);
  }
  search.compare();
  std::optional<PlacedPoint> best = search.place_fastest_within(*request.budget);
  return best ? std::move(*best) : search.place_smallest();
}

Bytes lower_bound_of(const FitRequest& request, const Backend& backend) { return Search(request, backend).floor(); }

}  // namespace snug
