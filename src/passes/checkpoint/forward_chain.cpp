#include "passes/checkpoint/forward_chain.h"

#include <algorithm>
#include <set>

#include "ir/op.h"

namespace snug {

namespace {

// A value this many times smaller than what it is made from is small.
constexpr std::int64_t kSmall = 32;

// In a network whose blocks are connected by one value, no block has this many nodes.
constexpr std::size_t kLongLink = 24;
constexpr std::size_t kMostCarriers = 4;

bool is_made_cheaply_from_states(const Section& section, const ForwardPass& forward, const Node& node) {
  return node.op->cheap_to_recompute && std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
           return !section.value(id).is_state() && !forward.is_free[id.index()];
         });
}

class ChainFinder {
 public:
  ChainFinder(const Section& section, const ForwardPass& forward)
      : section_(section), forward_(forward), last_reader_(section.values.size(), 0), is_beside_(section.values.size(), false) {
    for (std::size_t i = 0; i < forward.end; ++i) {
      for (const ValueId input : section.nodes[i].inputs) last_reader_[input.index()] = i;
    }
    born_.resize(forward.end);
    dies_.resize(forward.end);
    for (std::size_t v = 0; v < section.values.size(); ++v) {
      if (!forward.maker[v].valid() || forward.is_small[v] || last_reader_[v] <= forward.maker[v].index()) continue;
      born_[forward.maker[v].index()].push_back(ValueId(v));
      dies_[last_reader_[v]].push_back(ValueId(v));
    }
  }

  ForwardChain run() {
    ForwardChain chain;
    for (const Link& link : cut(0, forward_.end, 1)) cut_further(link, chain.links);
    // What a link made and passed on may have turned out to be beside the chain.
    for (Link& link : chain.links) {
      if (std::erase_if(link.carriers, [&](ValueId id) { return is_beside_[id.index()]; }) == 0) continue;
      link.carried = {};
      for (const ValueId id : link.carriers) link.carried += section_.value(id).type.bytes();
    }
    for (std::size_t v = 0; v < is_beside_.size(); ++v) {
      if (is_beside_[v]) chain.beside.push_back(ValueId(v));
    }
    return chain;
  }

 private:
  // The nodes [begin, end) as links, from each of which at most `most` values carry on.
  std::vector<Link> cut(std::size_t begin, std::size_t end, std::size_t most) const {
    std::set<ValueId> alive;  // and not beside the chain
    std::size_t free = 0;     // of those
    const auto count = [&](ValueId id) { return static_cast<std::size_t>(forward_.is_free[id.index()] ? 1 : 0); };
    for (std::size_t i = 0; i < begin; ++i) {
      for (const ValueId id : born_[i]) {
        if (last_reader_[id.index()] >= begin && !is_beside_[id.index()] && alive.insert(id).second) free += count(id);
      }
    }
    std::vector<Link> links;
    Link link{.begin = begin};
    std::vector<ValueId> carriers(alive.begin(), alive.end());  // of the link before
    for (std::size_t i = begin; i < end; ++i) {
      const Node& node = section_.nodes[i];
      for (const ValueId output : node.outputs) {
        if (forward_.read_by_backward[output.index()] && !forward_.is_small[output.index()])
          link.kept += section_.value(output).type.bytes();
      }
      if (node.op->joins_branches && forward_.makes(node.inputs[0]) && forward_.makes(node.inputs[1])) link.joins_branches = true;
      for (const ValueId id : born_[i]) {
        if (!is_beside_[id.index()] && alive.insert(id).second) free += count(id);
      }
      for (const ValueId id : dies_[i]) {
        if (alive.erase(id) > 0) free -= count(id);
      }
      // A free value carries on only where nothing else does.
      const bool few = alive.size() <= most || alive.size() - free <= most;
      const bool is_last = i + 1 == end;
      if (!few && !is_last) continue;
      std::vector<ValueId> now;
      for (const ValueId id : alive) {
        if (!forward_.is_free[id.index()] || (alive.size() <= most && alive.size() == free)) now.push_back(id);
      }
      // Where a value still carries on that did at the last cut, there is no new cut: the nodes between only read it, and its
      // bytes would count twice.
      const auto carried_before = [&](ValueId id) { return std::binary_search(carriers.begin(), carriers.end(), id); };
      if (!is_last && (now.empty() ? carriers.empty() : std::any_of(now.begin(), now.end(), carried_before))) continue;
      carriers = now;
      link.end = i + 1;
      for (const ValueId id : now) link.carried += section_.value(id).type.bytes();
      link.carriers = std::move(now);
      links.push_back(std::move(link));
      link = {.begin = i + 1};
    }
    return links;
  }

  // The link, or its parts when several values may carry on and those that live across it are kept beside the chain.
  void cut_further(const Link& link, std::vector<Link>& links) {
    if (link.end - link.begin <= kLongLink) return links.push_back(link);
    for (std::size_t i = 0; i < link.end; ++i) {
      for (const ValueId id : born_[i]) {
        const std::size_t inside = std::min(last_reader_[id.index()], link.end) - std::min(std::max(i, link.begin), link.end);
        if (last_reader_[id.index()] >= link.begin && inside > kLongLink && !forward_.is_free[id.index()])
          is_beside_[id.index()] = true;
      }
    }
    for (std::size_t most = 1; most <= kMostCarriers; ++most) {
      const std::vector<Link> shorter = cut(link.begin, link.end, most);
      const auto is_long = [](const Link& one) { return one.end - one.begin > kLongLink; };
      if (most < kMostCarriers && std::any_of(shorter.begin(), shorter.end(), is_long)) continue;
      links.insert(links.end(), shorter.begin(), shorter.end());
      return;
    }
  }

  const Section& section_;
  const ForwardPass& forward_;
  std::vector<std::size_t> last_reader_;           // by value, among forward nodes
  std::vector<bool> is_beside_;                    // by value
  std::vector<std::vector<ValueId>> born_, dies_;  // by forward node: values that later forward nodes read
};

}  // namespace

std::size_t end_of_forward(const Section& section) {
  const auto behind = std::find_if(section.nodes.begin(), section.nodes.end(), [](const Node& node) {
    return node.phase == Phase::backward || node.phase == Phase::recompute;
  });
  return static_cast<std::size_t>(behind - section.nodes.begin());
}

ForwardPass find_forward_pass(const Section& section) {
  ForwardPass forward;
  forward.end = end_of_forward(section);
  forward.maker.assign(section.values.size(), NodeId::none());
  forward.read_by_backward.assign(section.values.size(), false);
  forward.is_small.assign(section.values.size(), false);
  forward.is_free.assign(section.values.size(), false);
  for (std::size_t i = 0; i < forward.end; ++i) {
    const Node& node = section.nodes[i];
    Bytes read;
    for (const ValueId input : node.inputs) {
      if (!section.value(input).is_state()) read += section.value(input).type.bytes();
    }
    const bool is_free = is_made_cheaply_from_states(section, forward, node);
    for (const ValueId output : node.outputs) {
      if (section.value(output).is_state()) continue;
      forward.maker[output.index()] = NodeId(i);
      forward.is_free[output.index()] = is_free;
      forward.is_small[output.index()] = section.value(output).type.bytes() * kSmall <= read;
    }
  }
  for (std::size_t i = forward.end; i < section.nodes.size(); ++i) {
    for (const ValueId input : section.nodes[i].inputs) {
      if (forward.makes(input)) forward.read_by_backward[input.index()] = true;
    }
  }
  return forward;
}

ForwardChain find_chain(const Section& section, const ForwardPass& forward) { return ChainFinder(section, forward).run(); }

}  // namespace snug
