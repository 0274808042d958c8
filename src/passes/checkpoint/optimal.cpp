#include "passes/checkpoint/optimal.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "ir/op.h"
#include "passes/accumulate_in_place.h"
#include "passes/checkpoint/chain_measures.h"
#include "passes/checkpoint/clonable.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/select_kernels.h"
#include "passes/share_bytes.h"

namespace snug {

// A section without names and constants, its kernels chosen, and its forward pass as a chain.
struct LoweredChain {
  Section section;
  ForwardPass forward;
  std::vector<double> node_seconds;  // by forward node
  MeasuredChain measured;
};

namespace {

constexpr int kMostTrials = 9;  // plans that are rewritten and measured
constexpr std::size_t kLeastSteps = 4;
constexpr std::size_t kFewLinks = 40;            // chains up to this length get more slots
constexpr std::size_t kMostNodesTried = 15'000;  // in all trials of single values: larger sections get fewer
constexpr std::size_t kFewLinksToChooseFrom = 8;
constexpr std::ptrdiff_t kReaders = 3;  // places in the forward pass at which a value is alive anyway
constexpr std::int64_t kManySlots = 1500;
constexpr std::int64_t kFewSlots = 300;

constexpr std::size_t kMostChains = 4;  // one size with and without workspace limits

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

struct Trial {
  Recomputation what;
  std::vector<std::size_t> runs_at;        // by forward node: its place in the rewritten section
  std::vector<std::size_t> runs_again_at;  // by forward node: that of its first clone; kNever
  std::vector<std::int64_t> bytes_at;      // by place
  double seconds = 0;
  std::int64_t bytes = 0;
};

// The section is copied for every trial, and neither bytes nor lifetimes come from texts and constants.
void strip(Section& section) {
  for (Value& value : section.values) value.name.clear();
  for (Node& node : section.nodes) {
    const bool adds = accumulates(node.attributes);
    node.attributes = {};
    if (adds) node.attributes.set(kAccumulate, std::int64_t{1});
    node.layer.clear();
    node.kernel.clear();
  }
}

LoweredChain lower_chain(const Program& program, const Section& section, const ForwardPass& forward, const PassContext& context) {
  // The section alone, as later passes will leave it: with kernels and workspaces.
  Program lowered{.name = program.name,
                  .batch = program.batch,
                  .microbatch = program.microbatch,
                  .states = program.states,
                  .sections = {section}};
  lowered = select_kernels(accumulate_in_place(std::move(lowered), context), context);
  LoweredChain chain{.section = std::move(lowered.sections.front())};
  chain.forward = find_forward_pass(chain.section);
  SNUG_CHECK(chain.forward.end == forward.end, "choosing kernels changed the forward pass");
  for (std::size_t i = 0; i < forward.end; ++i)
    chain.node_seconds.push_back(node_seconds(context.costs, chain.section, chain.section.nodes[i]));
  strip(chain.section);
  chain.measured = measure_chain(chain.section, chain.forward, chain.node_seconds);
  return chain;
}

class OptimalSearch {
 public:
  OptimalSearch(const LoweredChain& chain, const PassContext& context)
      : context_(context), chain_(chain), measured_(chain.measured), limit_(context.methods.checkpoint->limit.count()) {}

  Recomputation run() {
    const std::int64_t room = std::max(limit_ - measured_.always_bytes, least_bytes());
    const std::int64_t all = most_bytes();
    // Where keeping everything may just fit, an estimate must not decide.
    if (limit_ - measured_.always_bytes >= all - all / 8 && everything_kept().bytes <= limit_) return best_->what;
    const std::int64_t most = std::min(room + room / 4, all + all / 64);
    const ChainProgram program(measured_.chain, most, measured_.chain.size() <= kFewLinks ? kManySlots : kFewSlots);
    const std::vector<std::int64_t> steps = program.steps();
    if (steps.empty()) return everything_kept().what;

    // The largest step whose measured bytes are within the limit, assuming that bytes grow with the steps.
    std::size_t low = 0;
    std::size_t high = steps.size();
    std::size_t next =
        static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), limit_ - measured_.always_bytes) - steps.begin());
    next = next == 0 ? 0 : next - 1;
    for (int trial = 0; trial < kMostTrials && low < high; ++trial) {
      const std::int64_t over = look_at(*program.plan(steps[next])).bytes - limit_;
      if (over > 0) {
        high = next;
      } else {
        low = next + 1;
      }
      if (low >= high) break;
      // The step whose estimate, corrected by the error found here, meets the limit; the middle where that is out of range.
      const auto guess =
          static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), steps[next] - over) - steps.begin());
      next = trial < 3 && guess > low && guess <= high ? guess - 1 : low + (high - low) / 2;
    }
    // Where nothing keeps the limit, the smallest estimate need not be the smallest when measured.
    for (std::size_t i = 1; i < std::min(kLeastSteps, steps.size()) && best_->bytes > limit_; ++i) {
      look_at(*program.plan(steps[i]));
    }
    improve();
    improve_from_above();
    return best_->what;
  }

 private:
  // Single values: while the plan takes too many bytes, kept values are dropped; once it does not, recomputed values are kept
  // where there is room. Every change that helps stays. Values that are expensive for their bytes are kept first and dropped
  // last.
  void improve() {
    int left = static_cast<int>(std::clamp<std::size_t>(kMostNodesTried / (chain_.section.nodes.size() + 1), 2, 60));
    const std::vector<std::size_t> dear = nodes_by_cost();
    for (std::size_t i = dear.size(); i-- > 0 && left > 0 && best_->bytes > limit_;) {
      left -= change(dear[i], &Recomputation::drops);
    }
    if (best_->bytes > limit_) return;
    for (std::size_t i = 0; i < dear.size() && left > 0; ++i) {
      if (has_room(dear[i])) left -= change(dear[i], &Recomputation::stays);
    }
  }

  // A chain of few links leaves the dynamic program little to choose from: then the same is tried starting from everything kept.
  void improve_from_above() {
    if (measured_.chain.size() > kFewLinksToChooseFrom || best_->seconds == 0) return;
    const Trial below = *std::exchange(best_, std::nullopt);
    everything_kept();
    improve();
    if (is_better(below, *best_)) best_ = below;
  }

  // Whether the best plan has room for the node's result from the forward pass to where the node is first run again.
  bool has_room(std::size_t node) const {
    const std::size_t again = best_->runs_again_at[node];
    if (again == kNever) return false;
    const auto first = best_->bytes_at.begin() + static_cast<std::ptrdiff_t>(best_->runs_at[node]);
    const auto end = best_->bytes_at.begin() + static_cast<std::ptrdiff_t>(again);
    const Section& section = chain_.section;
    const std::int64_t bytes = section.value(section.nodes[node].outputs.front()).type.bytes().count();
    // At its own node and at its readers it is already counted.
    return std::count_if(first, end, [&](std::int64_t there) { return there + bytes > limit_; }) <= kReaders;
  }

  int change(std::size_t node, std::vector<bool> Recomputation::*exceptions) {
    Recomputation what = best_->what;
    std::vector<bool>& chosen = what.*exceptions;
    chosen.resize(chain_.forward.end, false);
    if (chosen[node]) return 0;
    chosen[node] = true;
    look_at(std::move(what));
    return 1;
  }

  // Forward nodes whose results backward may read and that may run again: most seconds per byte first.
  std::vector<std::size_t> nodes_by_cost() const {
    const Section& section = chain_.section;
    const std::vector<bool> may_clone = find_clonable_nodes(section, chain_.forward.end);
    std::vector<std::pair<double, std::size_t>> ranked;
    for (std::size_t i = 0; i < chain_.forward.end; ++i) {
      const ValueId result = section.nodes[i].outputs.front();
      if (!may_clone[i] || chain_.forward.is_small[result.index()] || section.value(result).is_state()) continue;
      const auto bytes = static_cast<double>(section.value(result).type.bytes().count());
      ranked.emplace_back(-chain_.node_seconds[i] / std::max(bytes, 1.0), i);
    }
    std::sort(ranked.begin(), ranked.end());
    std::vector<std::size_t> nodes;
    nodes.reserve(ranked.size());
    for (const auto& [cost, node] : ranked) nodes.push_back(node);
    return nodes;
  }

  // The fewest bytes of any plan by the chain's figures: every link is rerun from the very beginning.
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

  const Trial& look_at(const ChainPlan& plan) { return look_at(recomputation_of(measured_, plan, chain_.forward)); }

  const Trial& look_at(Recomputation what) {
    trial_ = {.what = std::move(what),
              .runs_at = std::vector<std::size_t>(chain_.forward.end, 0),
              .runs_again_at = std::vector<std::size_t>(chain_.forward.end, kNever)};
    Program program;
    program.sections.push_back(chain_.section);
    const std::vector<std::size_t> again = recompute(program.sections.front(), chain_.forward, trial_.what);
    for (const std::size_t node : again) trial_.seconds += chain_.node_seconds[node];
    program = share_bytes(eliminate_dead_nodes(std::move(program), context_), context_);
    const Section& section = program.sections.front();
    trial_.bytes_at = bytes_by_node(section);
    for (const std::int64_t bytes : trial_.bytes_at) trial_.bytes = std::max(trial_.bytes, bytes);
    std::size_t clones = 0;
    for (std::size_t i = 0; i < section.nodes.size(); ++i) {
      const Node& node = section.nodes[i];
      for (const ValueId output : node.outputs) {
        if (node.phase == Phase::forward && chain_.forward.makes(output)) {
          trial_.runs_at[chain_.forward.maker[output.index()].index()] = i;
        }
      }
      if (node.phase != Phase::recompute) continue;
      std::size_t& first = trial_.runs_again_at[again[clones++]];
      if (first == kNever) first = i;
    }
    if (!best_ || is_better(trial_, *best_)) best_ = trial_;
    return trial_;
  }

  // Within the limit is better than beyond it; within it less time is better, beyond it fewer bytes.
  bool is_better(const Trial& a, const Trial& b) const {
    const auto rank = [&](const Trial& trial) {
      const bool fits = trial.bytes <= limit_;
      return std::tuple(!fits, fits ? trial.seconds : 0.0, trial.bytes, trial.seconds);
    };
    return rank(a) < rank(b);
  }

  const PassContext& context_;
  const LoweredChain& chain_;
  const MeasuredChain& measured_;
  std::int64_t limit_;
  Trial trial_;
  std::optional<Trial> best_;
};

}  // namespace

std::shared_ptr<const LoweredChain> OptimalAnswers::chain(const Variant& variant) const {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(chains_, variant, [](const auto& entry) { return entry.first; });
  return found == chains_.end() ? nullptr : found->second;
}

void OptimalAnswers::set_chain(const Variant& variant, std::shared_ptr<const LoweredChain> chain) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(chains_, [&](const auto& entry) { return entry.first == variant; });  // another thread may have been faster
  chains_.emplace_back(variant, std::move(chain));
  if (chains_.size() > kMostChains) chains_.pop_front();
}

std::optional<Recomputation> OptimalAnswers::answer(const Variant& variant, Bytes limit) const {
  const std::scoped_lock lock(mutex_);
  const auto found = answers_.find({variant, limit});
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

void OptimalAnswers::set_answer(const Variant& variant, Bytes limit, const Recomputation& answer) {
  const std::scoped_lock lock(mutex_);
  answers_.insert_or_assign({variant, limit}, answer);
}

Recomputation find_optimal_recomputation(const Program& program, const Section& section, const ForwardPass& forward,
                                         const PassContext& context) {
  OptimalAnswers* known = context.optimal_answers;
  if (known == nullptr) return OptimalSearch(lower_chain(program, section, forward, context), context).run();
  const OptimalAnswers::Variant variant{program.microbatch, context.backend.workspace_limit};
  if (auto answer = known->answer(variant, context.methods.checkpoint->limit)) return *std::move(answer);
  std::shared_ptr<const LoweredChain> chain = known->chain(variant);
  if (chain == nullptr) {
    chain = std::make_shared<const LoweredChain>(lower_chain(program, section, forward, context));
    known->set_chain(variant, chain);
  }
  Recomputation answer = OptimalSearch(*chain, context).run();
  known->set_answer(variant, context.methods.checkpoint->limit, answer);
  return answer;
}

}  // namespace snug
