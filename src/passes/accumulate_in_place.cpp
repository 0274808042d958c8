#include "passes/accumulate_in_place.h"

#include <algorithm>

#include "ir/section_editor.h"

namespace snug {

namespace {

class Accumulator {
 public:
  Accumulator(Section& section, const Backend& backend) : section_(section), backend_(backend), editor_(section) {}

  void run() {
    for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
      const Node& node = section_.nodes[i];
      if (!node.op->is_sum) continue;
      // Autodiff puts the older sum first; either order gives the same bits.
      if (merge(i, node.inputs[0], node.inputs[1]) || merge(i, node.inputs[1], node.inputs[0])) editor_.erase(i);
    }
    editor_.apply();
  }

 private:
  // Moves the addition at node `at` into the node that makes `summand`, if it may.
  bool merge(std::size_t at, ValueId sum, ValueId summand) {
    const std::size_t maker_index = editor_.maker(summand);
    if (maker_index == SectionEditor::kNobody || editor_.readers(summand).size() != 1 || section_.value(summand).is_state())
      return false;
    Node& maker = section_.nodes[maker_index];
    if (!maker.op->may_accumulate || maker.outputs.front() != summand || accumulates(maker.attributes)) return false;
    const ValueId result = section_.nodes[at].outputs.front();
    if (!exists(sum, maker_index) || is_touched(sum, maker_index, at) || is_touched(result, maker_index, at)) return false;
    if (section_.value(sum).type != section_.value(summand).type) return false;

    Node candidate = maker;
    candidate.inputs.push_back(sum);
    candidate.attributes.set(kAccumulate, std::int64_t{1});
    candidate.outputs.front() = result;
    // A different kernel than the one that makes the summand alone would give other bits, and be slower.
    Accept accept;
    const KernelDef* making = kernel_of(maker, accept);
    const bool too_large =
        section_.value(result).is_state() && exceeds_limit(accept.workspace + section_.value(summand).type.bytes());
    const KernelDef* adding = kernel_of(candidate, accept);
    if (adding == nullptr || (adding != making && !too_large)) return false;
    maker.attributes.set(kAccumulate, std::int64_t{1});
    editor_.add_input(maker_index, sum);
    editor_.set_output(maker_index, 0, result);
    return true;
  }

  const KernelDef* kernel_of(const Node& node, Accept& accept) const {
    const NodeTypes types = types_of(section_, node);
    return backend_.choose(backend_.query(node, types), accept);
  }

  // A parameter's new gradient that is only added to a sum counts as workspace. Where it exceeds what a kernel may have, a kernel
  // that adds within the limit is what was asked for.
  bool exceeds_limit(Bytes size) const { return backend_.workspace_limit && size > *backend_.workspace_limit; }

  // Whether node `when` can read the value.
  bool exists(ValueId id, std::size_t when) { return section_.value(id).is_state() || editor_.maker(id) < when; }

  // Whether a node in [when, at) reads or writes the value's
  // state: then the addition cannot move from `at` to `when`.
  bool is_touched(ValueId id, std::size_t when, std::size_t at) const {
    const StateId state = section_.value(id).state;
    const auto touches = [&](ValueId other) { return section_.value(other).state == state; };
    for (std::size_t i = when; state.valid() && i < at; ++i) {
      const Node& node = section_.nodes[i];
      if (std::any_of(node.inputs.begin(), node.inputs.end(), touches)) return true;
      if (std::any_of(node.outputs.begin(), node.outputs.end(), touches)) return true;
    }
    return false;
  }

  Section& section_;
  const Backend& backend_;
  SectionEditor editor_;
};

}  // namespace

Program accumulate_in_place(Program program, const PassContext& context) {
  for (Section& section : program.sections) Accumulator(section, context.backend).run();
  return program;
}

}  // namespace snug
