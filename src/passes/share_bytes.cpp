#include "passes/share_bytes.h"

#include <algorithm>

namespace snug {

namespace {

class Sharer {
 public:
  explicit Sharer(Section& section) : section_(section) {
    const std::vector<ValueLife> lives = value_lives(section);
    root_.reserve(section.values.size());
    last_use_.reserve(section.values.size());
    for (std::size_t i = 0; i < section.values.size(); ++i) {
      root_.push_back(i);
      last_use_.push_back(lives[i].last_use);
    }
  }

  void run() {
    for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
      const Node& node = section_.nodes[i];
      for (std::size_t output = 0; output < node.outputs.size(); ++output) {
        const ValueId giver = find_giver(node, output, NodeId(i));
        if (giver.valid()) share(node.outputs[output], giver);
      }
    }
  }

 private:
  ValueId find_giver(const Node& node, std::size_t output, NodeId at) const {
    const Value& taker = section_.value(node.outputs[output]);
    if (taker.is_state()) return ValueId::none();
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      const ValueId id = node.inputs[input];
      const Value& giver = section_.value(id);
      if (giver.is_state() || giver.space != taker.space) continue;
      if (node.op->is_view && output == 0 && input == 0) return id;
      // A smaller taker would keep the larger buffer alive for longer; in another layout, elements are not read and written in
      // step.
      if (!promises_in_place(node, output, input) || giver.type.bytes() != taker.type.bytes()) continue;
      if (giver.type.layout != taker.type.layout) continue;
      if (last_use_[root_[id.index()]] != at || taken(node, output, id) || read_elsewhere(node, output, input)) continue;
      return id;
    }
    return ValueId::none();
  }

  // Another output of the same node already lies there.
  bool taken(const Node& node, std::size_t output, ValueId giver) const {
    return std::any_of(node.outputs.begin(), node.outputs.begin() + static_cast<std::ptrdiff_t>(output),
                       [&](ValueId other) { return root_[other.index()] == root_[giver.index()]; });
  }

  // The node also reads the same bytes through another operand that it has not promised to read in step.
  bool read_elsewhere(const Node& node, std::size_t output, std::size_t input) const {
    for (std::size_t other = 0; other < node.inputs.size(); ++other) {
      if (other == input || root_[node.inputs[other].index()] != root_[node.inputs[input].index()]) continue;
      if (!promises_in_place(node, output, other)) return true;
    }
    return false;
  }

  void share(ValueId taker, ValueId giver) {
    section_.value(taker).shares = giver;
    const std::size_t root = root_[giver.index()];
    root_[taker.index()] = root;
    last_use_[root] = std::max(last_use_[root], last_use_[taker.index()]);
  }

  Section& section_;
  std::vector<std::size_t> root_;  // the value that first had these bytes
  std::vector<NodeId> last_use_;   // of a root: by any value in its bytes
};

}  // namespace

Program share_bytes(Program program, const PassContext& /*context*/) {
  for (Section& section : program.sections) Sharer(section).run();
  return program;
}

}  // namespace snug
