#include "analysis/paper_network.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ir/op.h"
#include "ops/ops.h"

namespace snug::paper {

namespace {

constexpr std::int64_t kAsForward = -1;

struct Rule {
  const OpDef* op;
  std::size_t data_inputs = 1;  // how many of the first inputs are activations
  Keeps keeps = Keeps::nothing;
  bool is_product = false;  // backward is one such product for the weight and one for the input
  bool normalizes = false;
  bool passes_gradient = false;
  std::int64_t backward_each = kAsForward;  // FLOPs per element
};

// The costs of normalization are those of its gradient ops, batch_norm_grad_* and group_norm_grad_*.
constexpr std::array<Rule, 13> kRules{{
    {.op = &ops::conv2d, .keeps = Keeps::input, .is_product = true},
    {.op = &ops::linear, .keeps = Keeps::input, .is_product = true},
    {.op = &ops::batch_norm_apply, .keeps = Keeps::input, .normalizes = true, .backward_each = 11},
    {.op = &ops::group_norm, .keeps = Keeps::input, .normalizes = true, .backward_each = 16},
    {.op = &ops::relu, .keeps = Keeps::bits},
    {.op = &ops::add, .data_inputs = 2, .passes_gradient = true},
    {.op = &ops::shortcut, .passes_gradient = true},
    {.op = &ops::reshape, .passes_gradient = true},
    {.op = &ops::relayout, .passes_gradient = true},
    {.op = &ops::max_pool, .keeps = Keeps::input},
    {.op = &ops::avg_pool},
    {.op = &ops::global_avg_pool},
    {.op = &ops::dropout, .keeps = Keeps::mask},
}};
constexpr std::int64_t kNormalizedAgain = 2;  // FLOPs per element: a factor and a summand, from kept statistics

Rule rule_of(const Node& node) {
  if (node.op->loss != nullptr) return {.op = node.op, .keeps = Keeps::input, .backward_each = 0};
  const auto* const found = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& rule) { return rule.op == node.op; });
  if (found == kRules.end()) {
    throw_user_error("layer '{}' is a '{}', for which the paper has no rule; use --accounting real", node.layer, node.op->name);
  }
  return *found;
}

class NetworkBuilder {
 public:
  explicit NetworkBuilder(const Program& model)
      : model_(model), section_(model.section(SectionKind::forward)), lives_(value_lives(section_)), loss_(find_loss(section_)) {}

  Network build() {
    SNUG_CHECK(loss_.valid(), "the model '{}' has no loss", model_.name);
    const std::size_t values = section_.values.size();
    for (const Value& value : section_.values) network_.elements.push_back(value.type.elements());
    network_.producers.assign(values, Network::kNoOp);
    network_.consumers.resize(values);
    wants_gradient_.assign(values, false);
    for (const std::size_t node : nodes_of_loss()) add_op(node);
    count_gradients();
    return std::move(network_);
  }

 private:
  std::vector<ValueId> data_inputs(const Node& node) const {
    std::vector<ValueId> inputs;
    const std::size_t most = rule_of(node).data_inputs;
    for (std::size_t i = 0; i < std::min(most, node.inputs.size()); ++i) {
      const Value& value = section_.value(node.inputs[i]);
      if (!value.is_state() || value.role == Role::input) inputs.push_back(node.inputs[i]);
    }
    return inputs;
  }

  // In execution order. What makes the network's input (an image's normalization) is not part of the network, and what only
  // evaluation reads does not count.
  std::vector<std::size_t> nodes_of_loss() const {
    std::vector<bool> needed(section_.nodes.size(), false);
    needed[loss_.index()] = true;
    std::vector<std::size_t> nodes;
    for (std::size_t n = loss_.index() + 1; n-- > 0;) {
      if (!needed[n]) continue;
      nodes.push_back(n);
      for (const ValueId input : data_inputs(section_.nodes[n])) {
        const NodeId producer = lives_[input.index()].producer;
        if (producer.valid() && section_.nodes[producer.index()].op != &ops::image_input) needed[producer.index()] = true;
      }
    }
    std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }

  bool is_trained(ValueId id) const {
    const Value& value = section_.value(id);
    return value.is_state() && model_.states[value.state.index()].trainable;
  }

  std::int64_t flops_of(const Node& node) const { return count_flops(section_, node) / model_.microbatch; }

  // A batch norm's statistics are a separate node.
  std::int64_t forward_flops_of(const Node& node) const {
    if (node.op->loss != nullptr) return 0;
    std::int64_t flops = flops_of(node);
    if (node.op != &ops::batch_norm_apply) return flops;
    SNUG_CHECK(node.attributes.integer_or("relu", 0) == 0, "'{}': account for a model before its ReLUs are fused", node.layer);
    const NodeId statistics = lives_[node.inputs[1].index()].producer;
    if (statistics.valid()) flops += flops_of(section_.nodes[statistics.index()]);
    return flops;
  }

  void add_op(std::size_t number) {
    const Node& node = section_.nodes[number];
    const Rule rule = rule_of(node);
    Op op{.node = number, .inputs = data_inputs(node), .output = node.outputs.front(), .passes_gradient = rule.passes_gradient};
    const bool wants_input =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId input) { return wants_gradient_[input.index()]; });
    const bool trains = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return is_trained(input); });
    op.in_backward = wants_input || trains;
    const bool trains_weight = rule.is_product && is_trained(node.inputs[1]);
    if (op.in_backward && (!rule.is_product || trains_weight)) op.keeps = rule.keeps;

    op.is_relu = node.op == &ops::relu;
    const Op* before = op.inputs.empty() ? nullptr : network_.producer_of(op.inputs.front());
    op.renewable = rule.normalizes || (op.is_relu && before != nullptr && before->renewable);

    op.forward_flops = forward_flops_of(node);
    const std::int64_t elements = network_.elements_of(op.output) / model_.microbatch;
    op.again_flops = rule.normalizes ? kNormalizedAgain * elements : op.forward_flops;
    if (rule.is_product) {
      op.backward_flops = op.forward_flops * ((trains_weight ? 1 : 0) + (wants_input ? 1 : 0));
    } else if (op.in_backward) {
      op.backward_flops = rule.backward_each == kAsForward ? op.forward_flops : rule.backward_each * elements;
    }

    const std::size_t position = network_.ops.size();
    for (const ValueId input : op.inputs) network_.consumers[input.index()].push_back(position);
    network_.producers[op.output.index()] = position;
    wants_gradient_[op.output.index()] = op.in_backward;
    network_.ops.push_back(std::move(op));
  }

  // The tensor that is the gradient of `value` once all its readers are differentiated: its own, or, through a sum, that of the
  // sum.
  ValueId whole_gradient(ValueId value) const {
    while (network_.consumers_of(value).size() == 1) {
      const Op& reader = network_.ops[network_.consumers_of(value).front()];
      if (!reader.passes_gradient) break;
      value = reader.output;
    }
    return value;
  }

  // The same while only the readers after op `at` are differentiated; none when there are none yet.
  ValueId waiting_gradient(ValueId value, std::size_t at) const {
    const std::vector<std::size_t>& readers = network_.consumers_of(value);
    const auto behind = std::find_if(readers.begin(), readers.end(), [&](std::size_t reader) { return reader > at; });
    if (behind == readers.end()) return ValueId::none();
    const Op& reader = network_.ops[*behind];
    return readers.end() - behind == 1 && reader.passes_gradient ? whole_gradient(reader.output) : value;
  }

  void count_gradients() {
    std::vector<ValueId> open;  // made before the op, read by some op after it
    for (std::size_t at = 0; at < network_.ops.size(); ++at) {
      Op& op = network_.ops[at];
      std::erase_if(open, [&](ValueId value) { return network_.consumers_of(value).back() <= at; });
      if (op.in_backward && at + 1 < network_.ops.size()) {  // the loss's own gradient is a number
        std::vector<ValueId> alive;
        // A strided shortcut passes on every other pixel: that is not yet the whole gradient of its input.
        const ValueId whole = whole_gradient(op.output);
        alive.push_back(network_.elements_of(whole) == network_.elements_of(op.output) ? whole : op.output);
        for (const ValueId value : open) {
          const ValueId waiting = waiting_gradient(value, at);
          if (waiting.valid() && std::find(alive.begin(), alive.end(), waiting) == alive.end()) alive.push_back(waiting);
        }
        for (const ValueId value : alive) op.gradient_values += network_.elements_of(value);
      }
      if (op.in_backward && !network_.consumers_of(op.output).empty()) open.push_back(op.output);
    }
  }

  const Program& model_;
  const Section& section_;
  std::vector<ValueLife> lives_;
  const NodeId loss_;
  std::vector<bool> wants_gradient_;  // by value
  Network network_;
};

}  // namespace

const Op* Network::producer_of(ValueId value) const {
  const std::size_t op = producers[value.index()];
  return op == kNoOp ? nullptr : &ops[op];
}

Network network_of(const Program& model) { return NetworkBuilder(model).build(); }

std::vector<ValueId> crossing_values(const Network& network, std::size_t at) {
  std::vector<ValueId> values;
  for (std::size_t v = 0; v < network.consumers.size(); ++v) {
    const bool made_before = network.producers[v] == Network::kNoOp || network.producers[v] < at;
    if (made_before && !network.consumers[v].empty() && network.consumers[v].back() >= at) values.emplace_back(v);
  }
  return values;
}

std::vector<Unit> residual_units(const Network& network) {
  std::vector<Unit> units;
  std::vector<ValueId> open = crossing_values(network, 0);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < network.ops.size(); ++at) {
    const Op& op = network.ops[at];
    std::erase_if(open, [&](ValueId value) { return network.consumers_of(value).back() <= at; });
    if (!network.consumers_of(op.output).empty()) open.push_back(op.output);
    if (open.size() > 1) continue;
    const bool is_one_way = at == begin;
    if (!is_one_way) units.push_back({begin, at + 1});
    const bool follows_unit = is_one_way && !units.empty() && units.back().end == at;
    if (follows_unit && op.is_relu) units.back().end = at + 1;
    begin = at + 1;
  }
  return units;
}

}  // namespace snug::paper
