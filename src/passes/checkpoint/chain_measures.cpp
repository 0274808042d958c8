#include "passes/checkpoint/chain_measures.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/liveness.h"
#include "base/error.h"
#include "ir/op.h"
#include "passes/checkpoint/clonable.h"
#include "passes/share_bytes.h"

namespace snug {

namespace {

std::int64_t aligned(const Value& value) { return round_up(value.type.bytes(), kAlignment).count(); }

// Bytes in use over time, accumulated from additions to intervals.
class Profile {
 public:
  explicit Profile(std::size_t length) : change_(length + 1, 0) {}

  void add(std::size_t begin, std::size_t end, std::int64_t bytes) {
    if (begin >= end) return;
    change_[begin] += bytes;
    change_[end] -= bytes;
  }
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> result(change_.size() - 1);
    std::int64_t now = 0;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = now += change_[i];
    return result;
  }

 private:
  std::vector<std::int64_t> change_;
};

class ChainMeasurer {
 public:
  ChainMeasurer(const Section& section, const ForwardPass& forward, const std::vector<double>& node_seconds)
      : section_(section), forward_(forward), node_seconds_(node_seconds), may_clone_(find_clonable_nodes(section, forward.end)) {
    find_merged_links();
    find_owners();
    place_backward();
  }

  MeasuredChain measure() {
    MeasuredChain measured{.links = links_, .chain = std::vector<ChainLink>(links_.size())};
    measured.beside = beside_;
    for (std::size_t v = 0; v < forward_.maker.size(); ++v) {
      if (forward_.maker[v].valid() && is_aside_[v]) measured.always_bytes += aligned(section_.values[v]);
    }
    for (std::size_t l = 0; l < links_.size(); ++l) {
      ChainLink& link = measured.chain[l];
      link.carried_bytes = carried_bytes(l);
      const LinkRun pass = run_link(l, {}, true);
      link.pass_bytes = pass.peak_bytes;
      link.pass_seconds = pass.seconds;
      link.gradient_bytes = link.carried_bytes;
    }
    if (links_.empty()) return measured;
    measure_mode(measured, MeasuredChain::kKeepsAll);
    measure_mode(measured, MeasuredChain::kRenews);
    for (ChainLink& link : measured.chain) {
      // Nothing to renew: only one mode.
      if (link.modes[0].kept_bytes == link.modes[1].kept_bytes) link.modes.pop_back();
    }
    return measured;
  }

 private:
  void find_merged_links() {
    std::size_t begin = 0;
    ForwardChain chain = find_chain(section_, forward_);
    beside_ = std::move(chain.beside);
    is_aside_ = forward_.is_small;
    for (const ValueId id : beside_) is_aside_[id.index()] = true;
    const auto is_free = [&](ValueId id) { return forward_.is_free[id.index()]; };
    for (const Link& link : chain.links) {
      if (!link.carriers.empty() && std::all_of(link.carriers.begin(), link.carriers.end(), is_free)) continue;
      links_.push_back(link);
      links_.back().begin = begin;
      begin = link.end;
    }
  }

  void find_owners() {
    link_of_node_.resize(forward_.end);
    for (std::size_t l = 0; l < links_.size(); ++l) {
      for (std::size_t i = links_[l].begin; i < links_[l].end; ++i) link_of_node_[i] = l;
    }
  }

  bool is_forward(ValueId id) const { return id.index() < forward_.maker.size() && forward_.makes(id); }
  std::size_t link_of_value(ValueId id) const { return link_of_node_[forward_.maker[id.index()].index()]; }
  std::int64_t carried_bytes(std::size_t l) const {
    std::int64_t bytes = 0;
    for (const ValueId id : links_[l].carriers) bytes += aligned(section_.value(id));
    return bytes;
  }
  bool carries(std::size_t l, ValueId id) const {
    return std::binary_search(links_[l].carriers.begin(), links_[l].carriers.end(), id);
  }

  // The link that each backward node differentiates: since backward goes through the chain from its end, it is the earliest link
  // so far of which a node reads a value or a state. A carried value is read by the links on both its sides.
  void place_backward() {
    std::unordered_map<StateId, std::size_t> link_of_state;
    std::unordered_set<StateId> shared;
    for (std::size_t i = 0; i < forward_.end; ++i) {
      for (const ValueId input : section_.nodes[i].inputs) {
        if (!section_.value(input).is_state()) continue;
        const auto [found, is_new] = link_of_state.emplace(section_.value(input).state, link_of_node_[i]);
        if (!is_new && found->second != link_of_node_[i]) shared.insert(found->first);
      }
    }
    std::size_t now = links_.empty() ? 0 : links_.size() - 1;
    for (std::size_t i = forward_.end; i < section_.nodes.size(); ++i) {
      std::size_t latest = 0;
      bool reads = false;
      for (const ValueId input : section_.nodes[i].inputs) {
        std::size_t of = 0;
        if (section_.value(input).is_state()) {
          const auto found = link_of_state.find(section_.value(input).state);
          if (found == link_of_state.end() || shared.contains(found->first)) continue;
          of = found->second;
        } else if (is_forward(input)) {
          of = link_of_value(input);
          while (of < links_.size() && carries(of, input)) ++of;
        } else {
          continue;
        }
        reads = true;
        latest = std::max(latest, of);
      }
      if (reads) now = std::min(now, latest);
      link_of_backward_.push_back(now);
    }
  }

  struct LinkRun {
    std::int64_t peak_bytes = 0;
    double seconds = 0;
  };

  // Simulates recomputing the wanted values of the link, and the value that it carries if asked; everything else is dropped after
  // its last use. In place where a node may.
  LinkRun run_link(std::size_t l, const std::unordered_set<ValueId>& wanted, bool carries_on) const {
    std::unordered_set<ValueId> stays = wanted;
    for (const ValueId id : links_[l].carriers) {
      if (carries_on)
        stays.insert(id);
      else
        stays.erase(id);
    }
    std::vector<ValueId> open(stays.begin(), stays.end());
    std::unordered_set<std::size_t> seen;
    std::vector<std::size_t> nodes;
    std::unordered_map<ValueId, std::size_t> last_use;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!forward_.makes(id) || is_aside_[id.index()] || link_of_value(id) != l) continue;
      const std::size_t at = forward_.maker[id.index()].index();
      if (!may_clone_[at] || !seen.insert(at).second) continue;
      nodes.push_back(at);
      for (const ValueId input : section_.nodes[at].inputs) {
        std::size_t& last = last_use[input];
        last = std::max(last, at);
        open.push_back(input);
      }
    }
    std::sort(nodes.begin(), nodes.end());
    LinkRun run;
    std::int64_t alive = 0;
    std::unordered_set<ValueId> here;
    for (const std::size_t at : nodes) {
      const Node& node = section_.nodes[at];
      run.seconds += node_seconds_[at];
      const auto dies = [&](ValueId id) { return here.contains(id) && last_use[id] == at && !stays.contains(id); };
      for (std::size_t output = 0; output < node.outputs.size(); ++output) {
        const Value& value = section_.value(node.outputs[output]);
        for (std::size_t input = 0; input < node.inputs.size(); ++input) {
          const ValueId giver = node.inputs[input];
          if (!dies(giver) || aligned(section_.value(giver)) != aligned(value)) continue;
          if (!promises_in_place(node, output, input) && !node.op->is_view) continue;
          here.erase(giver);
          alive -= aligned(value);
          break;
        }
        here.insert(node.outputs[output]);
        alive += aligned(value);
      }
      const std::int64_t workspace = node.workspace.valid() ? aligned(section_.value(node.workspace)) : 0;
      run.peak_bytes = std::max(run.peak_bytes, alive + workspace);
      for (const ValueId input : node.inputs) {
        if (!dies(input)) continue;
        here.erase(input);
        alive -= aligned(section_.value(input));
      }
      for (const ValueId output : node.outputs) {
        if (last_use.contains(output) || stays.contains(output)) continue;
        here.erase(output);
        alive -= aligned(section_.value(output));
      }
    }
    return run;
  }

  // All links in one mode, with nothing recomputed except what the mode renews.
  void measure_mode(MeasuredChain& measured, std::size_t mode) const {
    Program program;
    program.sections.push_back(section_);
    Section& section = program.sections.front();
    Recomputation what;
    what.regions.of_node.assign(forward_.end, 0);
    what.renews.assign(forward_.end, mode == MeasuredChain::kRenews);
    const std::vector<std::size_t> again = recompute(section, forward_, what);
    const std::vector<std::unordered_set<ValueId>> kept = kept_values(section);
    const Backend none;
    program = share_bytes(std::move(program), {.backend = none});
    const Section& shared = program.sections.front();

    // By node: the link whose backward it is in. What is renewed belongs to its reader's link.
    std::vector<std::size_t> link_of(shared.nodes.size(), links_.size());
    std::vector<std::size_t> start_of(links_.size(), shared.nodes.size());
    std::size_t next = link_of_backward_.size();
    std::size_t now = 0;
    for (std::size_t i = shared.nodes.size(); i-- > forward_.end;) {
      if (shared.nodes[i].phase == Phase::backward) now = link_of_backward_[--next];
      link_of[i] = now;
    }
    for (std::size_t i = forward_.end; i < shared.nodes.size(); ++i) {
      for (std::size_t l = link_of[i]; l < links_.size() && start_of[l] == shared.nodes.size(); ++l) start_of[l] = i;
    }

    Profile all(shared.nodes.size());
    Profile gradients(shared.nodes.size());
    for (const Buffer& buffer : liveness(shared).buffers) {
      const std::int64_t bytes = round_up(buffer.size, kAlignment).count();
      for (std::size_t t = 0; t < buffer.tenants.size(); ++t) {
        const ValueId value = buffer.tenants[t].value;
        auto begin = static_cast<std::size_t>(buffer.tenants[t].from);
        const auto end = static_cast<std::size_t>(t + 1 < buffer.tenants.size() ? buffer.tenants[t + 1].from : buffer.end);
        if (is_forward(value)) {
          if (is_aside_[value.index()]) continue;
          begin = std::max(begin, start_of[link_of_value(value)]);
        } else {
          gradients.add(begin + 1, end, bytes);
        }
        all.add(begin, end, bytes);
      }
    }
    const std::vector<std::int64_t> bytes_at = all.sums();
    const std::vector<std::int64_t> gradient_bytes_at = gradients.sums();

    std::vector<bool> has_begun(links_.size(), false);
    for (std::size_t l = 0; l < links_.size(); ++l) {
      const LinkRun whole = run_link(l, kept[l], true);
      const LinkRun last = run_link(l, kept[l], false);
      std::int64_t kept_bytes = carried_bytes(l);
      for (const ValueId value : kept[l]) kept_bytes += carries(l, value) ? 0 : aligned(section_.value(value));
      measured.chain[l].modes.push_back({.kept_bytes = kept_bytes,
                                         .forward_bytes = whole.peak_bytes,
                                         .last_forward_bytes = last.peak_bytes,
                                         .again_seconds = whole.seconds,
                                         .last_seconds = last.seconds});
    }
    std::size_t renewed = 0;
    for (std::size_t i = forward_.end; i < shared.nodes.size(); ++i) {
      const std::size_t l = link_of[i];
      ChainMode& how = measured.chain[l].modes.back();
      how.backward_bytes = std::max(how.backward_bytes, bytes_at[i]);
      if (shared.nodes[i].phase == Phase::recompute) how.renew_seconds += node_seconds_[again[renewed++]];
      // A region opens when a value of it is first read.
      if (!has_begun[l] && (shared.nodes[i].phase == Phase::recompute || reads_of(shared.nodes[i], l))) {
        has_begun[l] = true;
        measured.chain[l].gradient_bytes = gradient_bytes_at[i];
      }
    }
  }

  bool reads_of(const Node& node, std::size_t l) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return is_forward(input) && !is_aside_[input.index()] && link_of_value(input) == l;
    });
  }

  // By link: its values that backward, or what is renewed for it, reads.
  std::vector<std::unordered_set<ValueId>> kept_values(const Section& rewritten) const {
    std::vector<std::unordered_set<ValueId>> kept(links_.size());
    for (std::size_t i = forward_.end; i < rewritten.nodes.size(); ++i) {
      for (const ValueId input : rewritten.nodes[i].inputs) {
        if (is_forward(input) && !is_aside_[input.index()]) kept[link_of_value(input)].insert(input);
      }
    }
    return kept;
  }

  const Section& section_;
  const ForwardPass& forward_;
  const std::vector<double>& node_seconds_;
  std::vector<bool> may_clone_;
  std::vector<Link> links_;
  std::vector<ValueId> beside_;
  std::vector<bool> is_aside_;                 // by value: small, or beside the chain, and so kept
  std::vector<std::size_t> link_of_node_;      // by forward node
  std::vector<std::size_t> link_of_backward_;  // by backward node, from the first on
};

}  // namespace

MeasuredChain measure_chain(const Section& section, const ForwardPass& forward, const std::vector<double>& node_seconds) {
  return ChainMeasurer(section, forward, node_seconds).measure();
}

Recomputation recomputation_of(const MeasuredChain& measured, const ChainPlan& plan, const ForwardPass& forward) {
  Recomputation what;
  what.regions.parent = plan.parent;
  what.regions.of_node.assign(forward.end, 0);
  what.renews.assign(forward.end, false);
  if (!measured.beside.empty()) what.stays.assign(forward.end, false);
  for (const ValueId id : measured.beside) what.stays[forward.maker[id.index()].index()] = true;
  for (std::size_t l = 0; l < measured.links.size(); ++l) {
    for (std::size_t i = measured.links[l].begin; i < measured.links[l].end; ++i) {
      what.regions.of_node[i] = plan.region[l];
      what.renews[i] = plan.mode[l] == MeasuredChain::kRenews;
    }
  }
  return what;
}

std::vector<std::int64_t> bytes_by_node(const Section& section) {
  Profile profile(section.nodes.size());
  for (const Buffer& buffer : liveness(section).buffers) {
    profile.add(static_cast<std::size_t>(buffer.begin), static_cast<std::size_t>(buffer.end),
                round_up(buffer.size, kAlignment).count());
  }
  return profile.sums();
}

std::int64_t fullest_bytes(const Section& section) {
  const std::vector<std::int64_t> bytes = bytes_by_node(section);
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace snug
