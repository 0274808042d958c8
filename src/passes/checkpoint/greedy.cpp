#include "passes/checkpoint/greedy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/section_editor.h"
#include "passes/checkpoint/clonable.h"
#include "passes/checkpoint/forward_chain.h"
#include "passes/checkpoint/greedy_order.h"

namespace snug {

namespace {

// Limits tried above one that cannot be kept: they find the smallest that can to within about 1%.
constexpr int kTries = 9;

Index index_of(ValueId id) { return static_cast<Index>(id.index()); }

// Which outputs may lie in which inputs' bytes, as share_bytes will decide once lifetimes are final.
std::vector<OrderProblem::Gift> gifts_of(const Section& section, const Node& node) {
  std::vector<OrderProblem::Gift> gifts;
  for (std::size_t output = 0; output < node.outputs.size(); ++output) {
    const Value& taker = section.value(node.outputs[output]);
    if (taker.is_state()) continue;
    const auto may_take = [&](std::size_t input) {
      const Value& giver = section.value(node.inputs[input]);
      const bool is_view = node.op->is_view && output == 0 && input == 0;
      return !giver.is_state() && giver.type.bytes() == taker.type.bytes() &&
             (is_view || (promises_in_place(node, output, input) && giver.type.layout == taker.type.layout));
    };
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      bool read_in_step = true;  // by every operand that is this value
      for (std::size_t other = 0; other < node.inputs.size(); ++other) {
        if (node.inputs[other] == node.inputs[input]) read_in_step = read_in_step && may_take(other);
      }
      if (read_in_step) gifts.push_back({.output = index_of(node.outputs[output]), .input = index_of(node.inputs[input])});
    }
  }
  return gifts;
}

OrderProblem make_problem(const Section& section, const PassContext& context) {
  const ForwardPass forward = find_forward_pass(section);
  const std::vector<bool> clonable = find_clonable_nodes(section, forward.end);
  OrderProblem problem;
  problem.values.resize(section.values.size());
  for (std::size_t i = 0; i < section.nodes.size(); ++i) {
    const Node& node = section.nodes[i];
    OrderProblem::Node& step = problem.nodes.emplace_back();
    step.gifts = gifts_of(section, node);
    // Kernels are not chosen yet; select_kernels will choose the same.
    const NodeTypes types = types_of(section, node);
    Accept accept;
    context.backend.choose(context.backend.query(node, types), accept);
    step.workspace = round_up(accept.workspace, kAlignment);
    step.seconds = node_seconds(context.costs, section, node);
    step.may_repeat = i < forward.end && clonable[i];
    for (const ValueId id : node.inputs) {
      const bool is_new = std::ranges::count(step.inputs, index_of(id)) == 0;
      if (is_new && !section.value(id).is_state()) step.inputs.push_back(index_of(id));
    }
    for (const ValueId id : node.outputs) {
      if (section.value(id).is_state()) continue;
      step.outputs.push_back(index_of(id));
      problem.values[id.index()] = {.bytes = round_up(section.value(id).type.bytes(), kAlignment),
                                    .maker = static_cast<Index>(i),
                                    .may_leave = step.may_repeat && !forward.is_small[id.index()]};
    }
  }
  return problem;
}

// The order for the smallest limit that can be kept and is not below the one asked for.
GreedyOrder find_order(const OrderProblem& problem, Bytes limit) {
  if (std::optional<GreedyOrder> order = order_greedily(problem, limit)) return std::move(*order);
  GreedyOrder order = *order_greedily(problem, Bytes(std::numeric_limits<std::int64_t>::max() / 2));  // nothing is dropped
  auto below = static_cast<double>(limit.count());
  auto kept = static_cast<double>(order.peak.count());
  for (int i = 0; i < kTries && below < kept; ++i) {
    const double middle = std::sqrt(below * kept);
    std::optional<GreedyOrder> other = order_greedily(problem, Bytes(static_cast<std::int64_t>(middle)));
    (other ? kept : below) = middle;
    if (other) order = std::move(*other);
  }
  return order;
}

// The nodes in that order, clones from the second time on.
void rewrite(Section& section, const std::vector<Index>& order) {
  SectionEditor editor(section);
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  std::vector<bool> ran(section.nodes.size(), false);
  std::vector<ValueId> current(section.values.size());
  for (std::size_t v = 0; v < current.size(); ++v) current[v] = ValueId(v);
  for (const Index at : order) {
    const Node& original = section.nodes[at];
    Node node = ran[at] ? editor.clone(original) : original;
    ran[at] = true;
    for (ValueId& input : node.inputs) input = current[input.index()];
    for (std::size_t k = 0; k < node.outputs.size(); ++k) current[original.outputs[k].index()] = node.outputs[k];
    nodes.push_back(std::move(node));
  }
  section.nodes = std::move(nodes);
}

}  // namespace

void drop_greedily(Section& section, const PassContext& context) {
  if (context.methods.checkpoint->limit == Bytes(0)) return;
  rewrite(section, find_order(make_problem(section, context), context.methods.checkpoint->limit).nodes);
}

}  // namespace snug
