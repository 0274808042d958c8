#include "passes/checkpoint/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/section_editor.h"
#include "passes/checkpoint/clonable.h"

namespace snug {

namespace {

class Checkpointer {
 public:
  Checkpointer(Section& section, const ForwardPass& forward, const Recomputation& what)
      : section_(section),
        forward_(forward),
        regions_(what.regions),
        what_(what),
        may_clone_(find_clonable_nodes(section, forward.end)),
        on_demand_(section.values.size(), false),
        home_(section.values.size(), 0),
        needed_(section.values.size(), false),
        targets_(regions_.parent.size()),
        is_open_(regions_.parent.size(), false),
        current_(section.values.size(), ValueId::none()),
        editor_(section) {}

  std::vector<std::size_t> run() {
    find_values_on_demand();
    find_homes();
    find_targets();
    rewrite();
    return std::move(again_);
  }

 private:
  const Node& maker(ValueId id) const { return section_.nodes[forward_.maker[id.index()].index()]; }
  std::size_t region_of_maker(ValueId id) const { return regions_.of_node[forward_.maker[id.index()].index()]; }

  bool stays(std::size_t node) const { return !what_.stays.empty() && what_.stays[node]; }

  // One pass over memory makes the result from values that backward reads too: an activation function whose gradient needs its
  // input.
  bool follows_kept(const Node& node) const {
    if (!node.op->cheap_to_recompute || node.op->is_view || node.op->joins_branches) return false;
    bool any = false;
    for (const ValueId input : node.inputs) {
      if (section_.value(input).is_state()) continue;
      if (!forward_.read_by_backward[input.index()]) return false;
      any = true;
    }
    return any;
  }

  // Values that are never kept and are recomputed one by one, just where backward reads them.
  void find_values_on_demand() {
    std::vector<bool> normalized(section_.values.size(), false);
    std::vector<bool> leaves_region(section_.values.size(), false);
    for (std::size_t i = 0; i < forward_.end; ++i) {
      for (const ValueId input : section_.nodes[i].inputs) {
        if (forward_.makes(input) && regions_.of_node[i] != region_of_maker(input)) leaves_region[input.index()] = true;
      }
    }
    for (std::size_t i = 0; i < forward_.end; ++i) {
      const Node& node = section_.nodes[i];
      if (!may_clone_[i]) continue;
      const bool follows = node.op->pointwise && normalized[node.inputs.front().index()];
      const ValueId result = node.outputs.front();
      // A value that leads out of a region is where the next one begins.
      normalized[result.index()] = what_.renews[i] && !stays(i) && (node.op->normalizes || follows || follows_kept(node)) &&
                                   !leaves_region[result.index()];
      const bool comes_back =
          normalized[result.index()] || forward_.is_free[result.index()] || (!what_.drops.empty() && what_.drops[i]);
      on_demand_[result.index()] = comes_back && !stays(i) && !forward_.is_small[result.index()];
    }
  }

  // The region that each value is kept with: the innermost around its maker and all forward nodes that may run again and read it.
  void find_homes() {
    for (std::size_t v = 0; v < home_.size(); ++v) {
      if (!forward_.maker[v].valid()) continue;
      const std::size_t at = forward_.maker[v].index();
      home_[v] = may_clone_[at] && !forward_.is_small[v] && !stays(at) ? regions_.of_node[at] : 0;
    }
    for (std::size_t i = 0; i < forward_.end; ++i) {
      if (!may_clone_[i]) continue;
      for (const ValueId input : section_.nodes[i].inputs) {
        if (forward_.makes(input)) home_[input.index()] = regions_.common(home_[input.index()], regions_.of_node[i]);
      }
    }
    for (std::size_t v = 0; v < home_.size(); ++v) {
      if (forward_.maker[v].valid() && !on_demand_[v] && home_[v] == 0) current_[v] = ValueId(v);
    }
  }

  void require(ValueId id) {
    if (!forward_.makes(id) || needed_[id.index()]) return;
    needed_[id.index()] = true;
    if (!on_demand_[id.index()]) return;
    for (const ValueId input : maker(id).inputs) require(input);
  }

  // For each region, its values that backward or a region inside it will read: innermost regions first.
  void find_targets() {
    for (std::size_t v = 0; v < needed_.size(); ++v) {
      if (forward_.read_by_backward[v]) require(ValueId(v));
    }
    std::vector<std::vector<ValueId>> at_home(targets_.size());
    for (std::size_t v = 0; v < home_.size(); ++v) {
      if (forward_.maker[v].valid() && !on_demand_[v]) at_home[home_[v]].push_back(ValueId(v));
    }
    for (std::size_t region = targets_.size(); region-- > 1;) {
      for (const ValueId id : at_home[region]) {
        if (needed_[id.index()]) targets_[region].push_back(id);
      }
      // What is kept with this region or one inside it is made on the way; the rest must exist before.
      std::unordered_set<ValueId> seen(targets_[region].begin(), targets_[region].end());
      std::vector<ValueId> open = targets_[region];
      while (!open.empty()) {
        const ValueId id = open.back();
        open.pop_back();
        for (const ValueId input : maker(id).inputs) {
          if (!forward_.makes(input)) continue;
          if (!on_demand_[input.index()] && home_[input.index()] < region) {
            require(input);
          } else if (seen.insert(input).second) {
            open.push_back(input);
          }
        }
      }
    }
  }

  void rewrite() {
    for (at_ = forward_.end; at_ < section_.nodes.size(); ++at_) {
      for (ValueId& input : section_.nodes[at_].inputs) {
        if (input.index() >= forward_.maker.size() || !forward_.makes(input)) continue;
        bring_back(input);
        input = current_[input.index()];
      }
    }
    editor_.apply();
  }

  void bring_back(ValueId id) {
    if (current_[id.index()].valid()) return;
    open(on_demand_[id.index()] ? region_of_maker(id) : home_[id.index()]);
    if (!current_[id.index()].valid()) make_again({id});
  }

  void open(std::size_t region) {
    if (region == 0 || is_open_[region]) return;
    is_open_[region] = true;
    open(regions_.parent[region]);
    make_again(targets_[region]);
  }

  // Clones the nodes that make these values from those that exist, in the order of the forward pass.
  void make_again(const std::vector<ValueId>& wanted) {
    std::vector<std::size_t> nodes;
    std::unordered_set<std::size_t> seen;
    std::vector<ValueId> open = wanted;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!forward_.makes(id) || current_[id.index()].valid()) continue;
      const std::size_t at = forward_.maker[id.index()].index();
      SNUG_CHECK(may_clone_[at], "%{} was dropped and cannot be made again", section_.value(id).name);
      if (!seen.insert(at).second) continue;
      nodes.push_back(at);
      open.insert(open.end(), section_.nodes[at].inputs.begin(), section_.nodes[at].inputs.end());
    }
    std::sort(nodes.begin(), nodes.end());

    std::unordered_map<ValueId, ValueId> made;
    for (const std::size_t at : nodes) {
      Node clone = editor_.clone(section_.nodes[at]);
      for (ValueId& input : clone.inputs) {
        if (!forward_.makes(input)) continue;
        input = current_[input.index()].valid() ? current_[input.index()] : made.at(input);
      }
      for (std::size_t k = 0; k < clone.outputs.size(); ++k) made[section_.nodes[at].outputs[k]] = clone.outputs[k];
      editor_.insert_before(at_, std::move(clone));
      again_.push_back(at);
    }
    for (const ValueId id : wanted) {
      if (!current_[id.index()].valid()) current_[id.index()] = made.at(id);
    }
  }

  Section& section_;
  const ForwardPass& forward_;
  const Regions& regions_;
  const Recomputation& what_;
  std::vector<bool> may_clone_;                // by forward node
  std::vector<bool> on_demand_;                // by value, as all below
  std::vector<std::size_t> home_;              // the region it is kept with; unused for values on demand
  std::vector<bool> needed_;                   // by backward, or to make what backward needs
  std::vector<std::vector<ValueId>> targets_;  // by region: what rerunning it leaves in memory
  std::vector<bool> is_open_;                  // by region: it was run again
  std::vector<ValueId> current_;               // what replaces the value now; none while it is dropped
  SectionEditor editor_;
  std::size_t at_ = 0;  // the backward node that is being rewritten
  std::vector<std::size_t> again_;
};

}  // namespace

std::vector<std::size_t> recompute(Section& section, const ForwardPass& forward, const Recomputation& what) {
  SNUG_CHECK(what.regions.of_node.size() == forward.end && what.renews.size() == forward.end,
             "a recomputation of another forward pass");
  return Checkpointer(section, forward, what).run();
}

}  // namespace snug
