#include "passes/model/choose_recipes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "autodiff/gradient_flow.h"
#include "base/error.h"
#include "ir/builder.h"
#include "ir/op.h"

namespace snug {

namespace {

class RecipeChooser {
 public:
  RecipeChooser(const std::vector<State>& states, const Section& forward)
      : states_(states),
        forward_(forward),
        flow_(gradient_flow(states, forward)),
        choice_(forward_.nodes.size(), 0),
        kept_(forward_.nodes.size()),
        keepers_(forward_.values.size()),
        root_(forward_.values.size()) {
    std::iota(root_.begin(), root_.end(), 0);
    for (const Node& node : forward_.nodes) {
      if (node.op->is_view && !forward_.value(node.inputs[0]).is_state()) {
        root_[node.outputs[0].index()] = root_[node.inputs[0].index()];
      }
    }
    for (std::size_t i = 0; i < choice_.size(); ++i) {
      if (!flow_.node_active[i]) continue;
      for (const std::size_t value : kept_by(i, 0)) keepers_[value].push_back(i);
    }
  }

  std::vector<int> run() {
    // Largest values first: dropping one may need several nodes to change together.
    std::vector<std::size_t> order(keepers_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bytes(a) > bytes(b); });
    for (const std::size_t value : order) try_to_drop(value);
    return choice_;
  }

 private:
  Bytes bytes(std::size_t value) const { return forward_.values[value].type.bytes(); }

  // Transient values that recipe `r` of node `n` keeps, a view as the value in whose bytes it lies; states exist anyway.
  const std::vector<std::size_t>& kept_by(std::size_t n, std::size_t r) {
    auto& of_node = kept_[n];
    if (of_node.empty()) of_node.resize(forward_.nodes[n].op->gradients.size());
    if (!of_node[r]) of_node[r] = find_kept(n, r);
    return *of_node[r];
  }

  std::vector<std::size_t> find_kept(std::size_t n, std::size_t r) const {
    const Node& node = forward_.nodes[n];
    std::vector<std::size_t> kept;
    const auto gather = [&](const std::vector<ValueId>& ids, const std::vector<bool>& wanted) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!wanted[i] || forward_.value(ids[i]).is_state()) continue;
        const std::size_t root = root_[ids[i].index()];
        if (std::find(kept.begin(), kept.end(), root) == kept.end()) kept.push_back(root);
      }
    };
    const OperandsRead read = operands_read(node, node.op->gradients[r]);
    gather(node.inputs, read.inputs);
    gather(node.outputs, read.outputs);
    return kept;
  }

  struct OperandsRead {
    std::vector<bool> inputs, outputs;
  };

  // The node alone in a temporary section, whose first values are its operands.
  struct Scratch {
    Section section{.kind = SectionKind::micro, .values = {}, .nodes = {}};
    Node node;
  };
  Scratch alone(const Node& node) const {
    Scratch scratch{.node = node};
    for (auto* ids : {&scratch.node.inputs, &scratch.node.outputs}) {
      for (ValueId& id : *ids) {
        scratch.section.values.push_back(forward_.value(id));
        id = ValueId(scratch.section.values.size() - 1);
      }
    }
    return scratch;
  }

  // Which operands backward really reads, found by building it: a recipe says the most that it may read, and reads less where no
  // gradient is wanted (a convolution's input is needed for its weight's gradient alone).
  OperandsRead operands_read(const Node& node, const GradientRecipe& recipe) const {
    OperandsRead read;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) read.inputs.push_back(((recipe.keeps_inputs >> i) & 1U) != 0);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) read.outputs.push_back(((recipe.keeps_outputs >> i) & 1U) != 0);
    if (recipe.build == nullptr) return read;

    Scratch scratch = alone(node);
    SectionBuilder builder(states_, scratch.section);
    ValueId extra = ValueId::none();
    if (recipe.make_extra != nullptr) {
      try {
        extra = recipe.make_extra(builder, scratch.node);
      } catch (const UserError&) {
        return read;  // no recipe for this node, as `added_bytes` finds too
      }
    }
    std::vector<ValueId> output_gradients;
    for (const ValueId output : node.outputs) {
      output_gradients.push_back(ValueId::none());
      if (!flow_.reached[output.index()]) continue;
      scratch.section.values.push_back({.name = "gradient", .type = forward_.value(output).type});
      output_gradients.back() = ValueId(scratch.section.values.size() - 1);
    }
    std::vector<bool> wanted;
    for (const ValueId input : node.inputs) wanted.push_back(flow_.reached[input.index()]);
    const std::size_t forward_nodes = scratch.section.nodes.size();
    GradientContext context(builder, scratch.node, recipe, std::move(output_gradients), wanted, extra);
    recipe.build(context);

    const auto is_read = [&](ValueId operand) {
      const auto reads = [&](const Node& backward) {
        return std::find(backward.inputs.begin(), backward.inputs.end(), operand) != backward.inputs.end();
      };
      return std::any_of(scratch.section.nodes.begin() + static_cast<std::ptrdiff_t>(forward_nodes), scratch.section.nodes.end(),
                         reads);
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) read.inputs[i] = is_read(scratch.node.inputs[i]);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) read.outputs[i] = is_read(scratch.node.outputs[i]);
    return read;
  }

  // What recipe `r` of node `n` would add to everything that is kept now; nothing when the recipe does not work for this node.
  std::optional<Bytes> added_bytes(std::size_t n, std::size_t r) {
    Bytes total;
    for (const std::size_t value : kept_by(n, r)) {
      if (keepers_[value].empty()) total += bytes(value);
    }
    const GradientRecipe& recipe = forward_.nodes[n].op->gradients[r];
    if (recipe.make_extra == nullptr) return total;
    // Only the extra's type is wanted.
    Scratch scratch = alone(forward_.nodes[n]);
    SectionBuilder builder(states_, scratch.section);
    try {
      const ValueId extra = recipe.make_extra(builder, scratch.node);
      return total + scratch.section.value(extra).type.bytes();
    } catch (const UserError&) {
      return std::nullopt;  // such as the argmax of a window of more than 256 elements
    }
  }

  void try_to_drop(std::size_t value) {
    if (keepers_[value].empty()) return;
    Bytes cost;
    std::vector<std::pair<std::size_t, std::size_t>> changes;
    for (const std::size_t n : keepers_[value]) {
      std::size_t best = 0;
      std::optional<Bytes> best_cost;
      for (std::size_t r = 0; r < forward_.nodes[n].op->gradients.size(); ++r) {
        if (forward_.nodes[n].op->gradients[r].repeats_forward) continue;
        const std::vector<std::size_t>& kept = kept_by(n, r);
        if (std::find(kept.begin(), kept.end(), value) != kept.end()) continue;
        const std::optional<Bytes> added = added_bytes(n, r);
        if (added && (!best_cost || *added < *best_cost)) {
          best = r;
          best_cost = added;
        }
      }
      if (!best_cost) return;
      cost += *best_cost;
      changes.emplace_back(n, best);
    }
    if (cost >= bytes(value)) return;
    for (const auto& [n, r] : changes) {
      for (const std::size_t old : kept_by(n, static_cast<std::size_t>(choice_[n]))) std::erase(keepers_[old], n);
      choice_[n] = static_cast<int>(r);
      for (const std::size_t kept : kept_by(n, r)) keepers_[kept].push_back(n);
    }
  }

  const std::vector<State>& states_;
  const Section& forward_;
  GradientFlow flow_;
  std::vector<int> choice_;
  std::vector<std::vector<std::optional<std::vector<std::size_t>>>> kept_;  // by node and recipe, computed when first needed
  std::vector<std::vector<std::size_t>> keepers_;                           // by value: nodes whose recipe keeps it
  std::vector<std::size_t> root_;  // by value: in whose bytes it lies; itself unless it is a view
};

}  // namespace

Program choose_recipes(Program model) {
  for (Section& section : model.sections) {
    if (section.kind != SectionKind::forward) continue;
    const std::vector<int> recipes = RecipeChooser(model.states, section).run();
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      if (recipes[i] != 0) section.nodes[i].attributes.set(kRecipe, std::int64_t{recipes[i]});
    }
  }
  return model;
}

}  // namespace snug
