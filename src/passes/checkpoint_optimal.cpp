#include "passes/checkpoint_optimal.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "ir/op.h"
#include "passes/accumulate_in_place.h"
#include "passes/chain_measures.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/select_kernels.h"
#include "passes/share_bytes.h"

namespace snug {

namespace {

constexpr int kMostTrials = 9;         // plans that are rewritten and looked at
constexpr std::size_t kFewLinks = 40;  // chains up to this length get more slots
constexpr std::int64_t kManySlots = 1500;
constexpr std::int64_t kFewSlots = 300;

struct Trial {
  Recomputation what;
  double seconds = 0;
  std::int64_t bytes = 0;
};

class OptimalSearch {
 public:
  OptimalSearch(const Program& program, const Section& section, const ForwardPass& forward, const PassContext& context)
      : context_(context), forward_(forward), limit_(context.checkpoint.limit.count()) {
    // The section alone, as the passes behind this one will leave it: kernels know their workspace.
    lowered_ = {.name = program.name,
                .batch = program.batch,
                .microbatch = program.microbatch,
                .states = program.states,
                .sections = {section}};
    lowered_ = select_kernels(accumulate_in_place(std::move(lowered_), context), context);
    lowered_forward_ = find_forward_pass(lowered_.sections.front());
    SNUG_CHECK(lowered_forward_.end == forward.end, "choosing kernels changed the forward pass");
    Section& lowered = lowered_.sections.front();
    for (std::size_t i = 0; i < forward.end; ++i) node_seconds_.push_back(node_seconds(context.costs, lowered, lowered.nodes[i]));
    strip(lowered);
    measured_ = measure_chain(lowered, lowered_forward_, node_seconds_);
  }

  Recomputation run() {
    const std::int64_t room = std::max(limit_ - measured_.always_bytes, least_bytes());
    const std::int64_t all = most_bytes();
    // Where everything may just fit, an estimate must not decide.
    if (limit_ - measured_.always_bytes >= all - all / 8 && everything_kept().bytes <= limit_) return best_->what;
    const std::int64_t most = std::min(room + room / 4, all + all / 64);
    const ChainProgramme programme(measured_.chain, most, measured_.chain.size() <= kFewLinks ? kManySlots : kFewSlots);
    const std::vector<std::int64_t> steps = programme.steps();
    if (steps.empty()) return everything_kept().what;

    // The largest step that is within the limit for real, taking it that bytes grow with the steps.
    std::size_t low = 0;
    std::size_t high = steps.size();
    std::size_t next =
        static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), limit_ - measured_.always_bytes) - steps.begin());
    next = next == 0 ? 0 : next - 1;
    for (int trial = 0; trial < kMostTrials && low < high; ++trial) {
      const std::int64_t over = look_at(*programme.plan(steps[next])).bytes - limit_;
      if (over > 0) {
        high = next;
      } else {
        low = next + 1;
      }
      if (low >= high) break;
      // Where the estimate would be right if it were wrong everywhere by as much as here; the middle where that is no guess.
      const auto guess =
          static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), steps[next] - over) - steps.begin());
      next = trial < 3 && guess > low && guess <= high ? guess - 1 : low + (high - low) / 2;
    }
    return best_->what;
  }

 private:
  // The least that any plan takes by the chain's figures: every link run again from the very beginning.
  std::int64_t least_bytes() const {
    std::int64_t least = 0;
    for (std::size_t l = 0; l < measured_.chain.size(); ++l) {
      const ChainLink& link = measured_.chain[l];
      std::int64_t best = std::numeric_limits<std::int64_t>::max();
      for (const ChainMode& mode : link.modes) {
        best = std::min(best, std::max(mode.backward_bytes, mode.last_forward_bytes + link.gradient_bytes));
      }
      best = std::max(best, link.pass_bytes);
      least = std::max(least, best + (l == 0 ? 0 : measured_.chain[l - 1].carried_bytes));
    }
    return least;
  }

  // What keeping everything takes.
  std::int64_t most_bytes() const {
    ChainPlan plan;
    plan.region.assign(measured_.chain.size(), 0);
    plan.mode.assign(measured_.chain.size(), MeasuredChain::kKeepsAll);
    return std::max(run_chain(measured_.chain, plan).peak_bytes, least_bytes());
  }

  const Trial& everything_kept() {
    ChainPlan plan;
    plan.region.assign(measured_.chain.size(), 0);
    plan.mode.assign(measured_.chain.size(), MeasuredChain::kKeepsAll);
    return look_at(plan);
  }

  // The section is copied for every trial, and neither bytes nor lifetimes come from texts and constants.
  static void strip(Section& section) {
    for (Value& value : section.values) value.name.clear();
    for (Node& node : section.nodes) {
      const bool adds = accumulates(node.attributes);
      node.attributes = {};
      if (adds) node.attributes.set(kAccumulate, std::int64_t{1});
      node.layer.clear();
      node.kernel.clear();
    }
  }

  const Trial& look_at(const ChainPlan& plan) {
    trial_ = {.what = recomputation_of(measured_, plan, forward_.end)};
    Program program{.name = lowered_.name,
                    .batch = lowered_.batch,
                    .microbatch = lowered_.microbatch,
                    .states = {},
                    .sections = {lowered_.sections.front()}};
    for (const std::size_t node : recompute(program.sections.front(), lowered_forward_, trial_.what)) {
      trial_.seconds += node_seconds_[node];
    }
    program = share_bytes(eliminate_dead_nodes(std::move(program), context_), context_);
    const Section& section = program.sections.front();
    trial_.bytes = fullest_bytes(section);
    if (!best_ || is_better(trial_, *best_)) best_ = trial_;
    return trial_;
  }

  // Within the limit before beyond it; within, less time; beyond, fewer bytes.
  bool is_better(const Trial& a, const Trial& b) const {
    const auto rank = [&](const Trial& trial) {
      const bool fits = trial.bytes <= limit_;
      return std::tuple(!fits, fits ? trial.seconds : 0.0, trial.bytes, trial.seconds);
    };
    return rank(a) < rank(b);
  }

  const PassContext& context_;
  const ForwardPass& forward_;
  std::int64_t limit_;
  Program lowered_;
  ForwardPass lowered_forward_;
  std::vector<double> node_seconds_;  // by forward node
  MeasuredChain measured_;
  Trial trial_;
  std::optional<Trial> best_;
};

}  // namespace

Recomputation find_optimal_recomputation(const Program& program, const Section& section, const ForwardPass& forward,
                                         const PassContext& context) {
  return OptimalSearch(program, section, forward, context).run();
}

}  // namespace snug
