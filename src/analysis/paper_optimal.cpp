#include "analysis/paper_optimal.h"

#include <algorithm>

#include "analysis/paper_rules.h"
#include "base/error.h"

namespace snug::paper {

namespace {

constexpr std::int64_t kSlots = 2048;
constexpr std::int64_t kSlotsOfLongChains = 400;
constexpr std::size_t kLongChain = 60;

std::vector<std::size_t> link_begins(const Network& network) {
  std::vector<std::size_t> begins{0};
  const auto begin_at = [&](std::size_t at) {
    if (at > begins.back() && at < network.ops.size()) begins.push_back(at);
  };
  const std::vector<Unit> units = residual_units(network);
  for (const Unit& unit : units) begin_at(unit.begin);
  if (!units.empty()) {
    begin_at(units.back().end);
    return begins;
  }
  for (std::size_t at = 1; at < network.ops.size(); ++at) {
    if (network.ops[at].keeps == Keeps::input && crossing_values(network, at).size() == 1) begin_at(at);
  }
  return begins;
}

// The peak of a link's backward.
struct Moment {
  Bytes kept;  // of the link itself
  Bytes renewed;
  Bytes gradients;
  std::size_t op = 0;

  Bytes total() const { return kept + renewed + gradients; }
};

class PaperLink {
 public:
  PaperLink(const Network& network, const Options& options, std::size_t begin, std::size_t end)
      : network_(network), options_(options), begin_(begin), end_(end) {
    const std::vector<ValueId> held = crossing_values(network, begin);
    boundaries_.insert(held.begin(), held.end());
    if (end < network.ops.size()) carried_ = crossing_values(network, end);
  }

  ChainLink chain_link() const {
    ChainLink link;
    for (const ValueId value : carried_) link.carried_bytes += network_.elements_of(value) * options_.value_bytes;
    link.pass_seconds = flops(true, carried_);
    link.modes.push_back(mode(false, link.carried_bytes));
    ChainMode renewing = mode(true, link.carried_bytes);
    if (renewing.kept_bytes != link.modes.front().kept_bytes) link.modes.push_back(renewing);
    return link;
  }

  Moment fullest(bool renews) const {
    Moment fullest{.op = begin_};
    Amount kept;
    for (std::size_t at = begin_; at < end_; ++at) {
      const Op& op = network_.ops[at];
      if (!op.in_backward || op.passes_gradient) continue;
      kept += kept_by(network_, renews, boundaries_, op);
      const Moment now{.kept = kept.bytes(options_.value_bytes),
                       .renewed = renewed_for(network_, renews, boundaries_, op).bytes(options_.value_bytes),
                       .gradients = Amount{.values = op.gradient_values}.bytes(options_.value_bytes),
                       .op = at};
      if (now.total() >= fullest.total()) fullest = now;
    }
    return fullest;
  }

 private:
  double flops(bool renews, const std::vector<ValueId>& wanted) const {
    return static_cast<double>(flops_to_make(network_, renews, begin_, end_, end_, wanted));
  }

  ChainMode mode(bool renews, std::int64_t carried_bytes) const {
    Amount kept;
    std::vector<ValueId> wanted;
    for (std::size_t at = begin_; at < end_; ++at) {
      const Op& op = network_.ops[at];
      if (!op.in_backward || op.passes_gradient) continue;
      kept += kept_by(network_, renews, boundaries_, op);
      if (op.keeps == Keeps::bits || op.keeps == Keeps::mask) wanted.push_back(op.output);
      if (const auto value = kept_value(network_, renews, boundaries_, op)) wanted.push_back(*value);
    }
    std::vector<ValueId> all = wanted;
    all.insert(all.end(), carried_.begin(), carried_.end());
    return {.kept_bytes = kept.bytes(options_.value_bytes).count() + carried_bytes,
            .backward_bytes = fullest(renews).total().count(),
            .again_seconds = flops(renews, all),
            .last_seconds = flops(renews, wanted),
            .renew_seconds = renews ? static_cast<double>(flops_to_renew(network_, begin_, end_)) : 0.0};
  }

  const Network& network_;
  const Options& options_;
  std::size_t begin_;
  std::size_t end_;
  ValueSet boundaries_;
  std::vector<ValueId> carried_;
};

PaperLink link_at(const PaperChain& chain, const Network& network, const Options& options, std::size_t link) {
  const std::size_t end = link + 1 == chain.begins.size() ? network.ops.size() : chain.begins[link + 1];
  return {network, options, chain.begins[link], end};
}

}  // namespace

PaperChain chain_of(const Network& network, const Options& options) {
  PaperChain chain{.begins = link_begins(network), .links = {}, .input_bytes = {}};
  for (const ValueId value : crossing_values(network, 0)) {
    chain.input_bytes += Bytes(network.elements_of(value) * options.value_bytes);
  }
  for (std::size_t link = 0; link < chain.begins.size(); ++link) {
    chain.links.push_back(link_at(chain, network, options, link).chain_link());
  }
  return chain;
}

OptimalAccounting account_optimal(const Program& model, const Network& network, Bytes limit, const Options& options) {
  const PaperChain chain = chain_of(network, options);
  const std::int64_t room = (limit - chain.input_bytes).count();
  ChainPlan all;
  all.region.assign(chain.links.size(), 0);
  all.mode.assign(chain.links.size(), 0);
  const std::int64_t most = run_chain(chain.links, all).peak_bytes;

  // The dynamic program counts in slots, each link rounded by up to half a slot: so its plans are tried from as far above the
  // limit as the rounding may add, and the first whose real bytes are within it is taken.
  ChainPlan plan = all;
  if (room < most) {
    const ChainProgram program(chain.links, most + most / 32, chain.links.size() < kLongChain ? kSlots : kSlotsOfLongChains);
    const std::vector<std::int64_t> steps = program.steps();
    SNUG_CHECK(!steps.empty(), "no plan for '{}'", model.name);
    const std::int64_t rounded = static_cast<std::int64_t>(chain.links.size()) * program.unit_bytes() / 2;
    auto step = std::upper_bound(steps.begin(), steps.end(), room + rounded);
    do {
      if (step != steps.begin()) --step;
      plan = *program.plan(*step);
    } while (step != steps.begin() && run_chain(chain.links, plan).peak_bytes > room);
  }

  const ChainFigures figures = run_chain(chain.links, plan);
  const std::size_t at = figures.peak_link;
  const Moment moment = link_at(chain, network, options, at).fullest(plan.mode[at] == 1);
  OptimalAccounting result{.plan = std::move(plan), .activations = {}, .flops = {}};
  result.activations = {.kept = Bytes(figures.peak_bytes) + chain.input_bytes - moment.renewed - moment.gradients,
                        .renewed = moment.renewed,
                        .gradients = moment.gradients,
                        .layer = model.section(SectionKind::forward).nodes[network.ops[moment.op].node].layer};
  for (const Op& op : network.ops) {
    result.flops.forward += op.forward_flops;
    result.flops.backward += op.backward_flops;
  }
  result.flops.recompute = static_cast<std::int64_t>(figures.seconds);
  return result;
}

}  // namespace snug::paper
