#include "passes/choose_recipes.h"

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
  explicit RecipeChooser(const Graph& graph)
      : graph_(graph),
        flow_(gradient_flow(graph)),
        choice_(graph.forward.nodes.size(), 0),
        keepers_(graph.forward.values.size()),
        root_(graph.forward.values.size()) {
    std::iota(root_.begin(), root_.end(), 0);
    for (const Node& node : graph.forward.nodes) {
      if (node.op->is_view && !graph.forward.value(node.inputs[0]).is_state()) {
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
  Bytes bytes(std::size_t value) const { return graph_.forward.values[value].type.bytes(); }

  // Transient values that recipe `r` of node `n` keeps, a view as the value whose bytes it lies in; states are there anyway.
  std::vector<std::size_t> kept_by(std::size_t n, std::size_t r) const {
    const Node& node = graph_.forward.nodes[n];
    const GradientRecipe& recipe = node.op->gradients[r];
    std::vector<std::size_t> kept;
    const auto gather = [&](const std::vector<ValueId>& ids, std::uint32_t mask) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (((mask >> i) & 1U) == 0 || graph_.forward.value(ids[i]).is_state()) continue;
        const std::size_t root = root_[ids[i].index()];
        if (std::find(kept.begin(), kept.end(), root) == kept.end()) kept.push_back(root);
      }
    };
    gather(node.inputs, recipe.keeps_inputs);
    gather(node.outputs, recipe.keeps_outputs);
    return kept;
  }

  // What recipe `r` of node `n` would add, given everything that is kept now; nothing when the recipe does not do for this node.
  std::optional<Bytes> added_bytes(std::size_t n, std::size_t r) const {
    Bytes total;
    for (const std::size_t value : kept_by(n, r)) {
      if (keepers_[value].empty()) total += bytes(value);
    }
    const GradientRecipe& recipe = graph_.forward.nodes[n].op->gradients[r];
    if (recipe.make_extra == nullptr) return total;
    // Only the extra's type is wanted: make it in a section that is thrown away.
    const Node& node = graph_.forward.nodes[n];
    Section scratch{.kind = SectionKind::micro, .values = {}, .nodes = {}};
    Node copy = node;
    for (auto* ids : {&copy.inputs, &copy.outputs}) {
      for (ValueId& id : *ids) {
        scratch.values.push_back(graph_.forward.value(id));
        id = ValueId(scratch.values.size() - 1);
      }
    }
    SectionBuilder builder(graph_.states, scratch);
    try {
      const ValueId extra = recipe.make_extra(builder, copy);
      return total + scratch.value(extra).type.bytes();
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
      for (std::size_t r = 0; r < graph_.forward.nodes[n].op->gradients.size(); ++r) {
        const std::vector<std::size_t> kept = kept_by(n, r);
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

  const Graph& graph_;
  GradientFlow flow_;
  std::vector<int> choice_;
  std::vector<std::vector<std::size_t>> keepers_;  // by value: nodes whose recipe keeps it
  std::vector<std::size_t> root_;                  // by value: where it lies, itself unless it is a view
};

}  // namespace

std::vector<int> choose_recipes(const Graph& graph) { return RecipeChooser(graph).run(); }

}  // namespace snug
