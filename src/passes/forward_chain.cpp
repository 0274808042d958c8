#include "passes/forward_chain.h"

#include <algorithm>

#include "ops/ops.h"

namespace snug {

namespace {

// A value this many times smaller than what it is made from is small.
constexpr std::int64_t kSmall = 32;

// The single value alive behind each node, found from running sums.
struct Alive {
  std::int64_t count = 0;
  std::int64_t sum_of_numbers = 0;  // 1 + index of each: with a count of 1, that value's
};

}  // namespace

ForwardPass find_forward_pass(const Section& section) {
  ForwardPass forward;
  const auto first_backward =
      std::find_if(section.nodes.begin(), section.nodes.end(), [](const Node& node) { return node.phase == Phase::backward; });
  forward.end = static_cast<std::size_t>(first_backward - section.nodes.begin());
  forward.maker.assign(section.values.size(), NodeId::none());
  forward.read_by_backward.assign(section.values.size(), false);
  forward.is_small.assign(section.values.size(), false);
  for (std::size_t i = 0; i < forward.end; ++i) {
    const Node& node = section.nodes[i];
    Bytes read;
    for (const ValueId input : node.inputs) {
      if (!section.value(input).is_state()) read += section.value(input).type.bytes();
    }
    for (const ValueId output : node.outputs) {
      if (section.value(output).is_state()) continue;
      forward.maker[output.index()] = NodeId(i);
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

std::vector<Link> find_links(const Section& section, const ForwardPass& forward) {
  std::vector<std::size_t> last_reader(section.values.size(), 0);  // among forward nodes
  for (std::size_t i = 0; i < forward.end; ++i) {
    for (const ValueId input : section.nodes[i].inputs) last_reader[input.index()] = i;
  }
  std::vector<Alive> change(forward.end + 1);
  for (std::size_t v = 0; v < section.values.size(); ++v) {
    if (!forward.maker[v].valid() || forward.is_small[v] || last_reader[v] <= forward.maker[v].index()) continue;
    const auto number = static_cast<std::int64_t>(v) + 1;
    change[forward.maker[v].index()].count += 1;
    change[forward.maker[v].index()].sum_of_numbers += number;
    change[last_reader[v]].count -= 1;
    change[last_reader[v]].sum_of_numbers -= number;
  }

  std::vector<Link> links;
  Link link;
  Alive alive;
  std::int64_t carrier = 0;  // of the link before; 0: none
  for (std::size_t i = 0; i < forward.end; ++i) {
    const Node& node = section.nodes[i];
    for (const ValueId output : node.outputs) {
      if (forward.read_by_backward[output.index()] && !forward.is_small[output.index()])
        link.kept += section.value(output).type.bytes();
    }
    if (node.op == &ops::add && forward.makes(node.inputs[0]) && forward.makes(node.inputs[1])) link.joins_branches = true;
    alive.count += change[i].count;
    alive.sum_of_numbers += change[i].sum_of_numbers;
    const bool is_last = i + 1 == forward.end;
    // A place where the same value carries on as at the last one is no new place: what lies between only looks at that value.
    if (!is_last && (alive.count > 1 || alive.sum_of_numbers == carrier)) continue;
    carrier = alive.sum_of_numbers;
    link.end = i + 1;
    if (carrier > 0) {
      link.carrier = ValueId(static_cast<std::size_t>(carrier - 1));
      link.carried = section.value(link.carrier).type.bytes();
    }
    links.push_back(link);
    link = {.begin = i + 1};
  }
  return links;
}

}  // namespace snug
