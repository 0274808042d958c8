#include "passes/prepack_weights.h"

#include <optional>

#include "ir/section_editor.h"
#include "ops/ops.h"

namespace snug {

namespace {

struct Copy {
  StateId weight, packed;
};

class Packer {
 public:
  Packer(Program& program, const Backend& backend) : program_(program), backend_(backend) {
    for (const State& state : program.states) names_.take(state.name);
  }

  void run() {
    for (Section& section : program_.sections) {
      if (section.kind == SectionKind::micro) redirect(section);
    }
    if (copies_.empty()) return;
    Section derive{.kind = SectionKind::derive, .values = {}, .nodes = {}};
    SectionBuilder builder(program_.states, derive);
    for (const Copy& copy : copies_)
      builder.emit(ops::relayout, {builder.read(copy.weight)}, relayout_, options_of(copy, Phase::update));
    for (Section& section : program_.sections) {
      if (section.kind != SectionKind::micro) follow_writes(section);
    }
    program_.sections.push_back(std::move(derive));
  }

 private:
  // Lets data gradients read a copy of their weight where the kernel wants a different layout.
  void redirect(Section& micro) {
    SectionEditor editor(program_.states, micro);
    for (Node& node : micro.nodes) {
      // Forward nodes read the weight as it is stored, in the layout that was chosen for them.
      if (node.phase != Phase::backward || node.op->weight_operand < 0) continue;
      ValueId& operand = node.inputs[static_cast<std::size_t>(node.op->weight_operand)];
      const Value weight = micro.value(operand);
      if (!weight.is_state() || editor.last_writer(weight.state) != SectionEditor::kNobody) continue;
      const NodeTypes types = types_of(micro, node);
      const auto layout = backend_.preferred_weight_layout(backend_.query(node, types));
      if (layout && *layout != weight.type.layout) operand = editor.read(copy_of(weight.state, *layout));
    }
  }

  // The state that holds the weight in this layout, made when it is first asked for.
  StateId copy_of(StateId weight, const Layout& layout) {
    for (const Copy& copy : copies_) {
      if (copy.weight == weight && program_.state(copy.packed).type.layout == layout) return copy.packed;
    }
    State packed{.name = names_.make(program_.state(weight).name + ".packed"),
                 .type = program_.state(weight).type,
                 .role = Role::workspace};
    packed.type.layout = layout;
    program_.states.push_back(std::move(packed));
    copies_.push_back({.weight = weight, .packed = StateId(program_.states.size() - 1)});
    return copies_.back().packed;
  }

  EmitOptions options_of(const Copy& copy, Phase phase) const {
    return {.layer = program_.state(copy.weight).name, .role = Role::workspace, .phase = phase, .writes = {copy.packed}};
  }

  // Adds a copy after the last write of each weight that the section writes.
  void follow_writes(Section& section) {
    SectionEditor editor(program_.states, section);
    for (const Copy& copy : copies_) {
      const std::size_t writer = editor.last_writer(copy.weight);
      if (writer == SectionEditor::kNobody) continue;
      editor.emit_behind(writer, ops::relayout, {editor.read(copy.weight)}, relayout_,
                         options_of(copy, editor.node(writer).phase));
    }
    editor.apply();
  }

  Program& program_;
  const Backend& backend_;
  const Attributes relayout_{{"channels_last", std::int64_t{0}}};
  UniqueNames names_;  // of states
  std::vector<Copy> copies_;
};

}  // namespace

Program prepack_weights(Program program, const PassContext& context) {
  if (context.backend.preferred_weight_layout != nullptr) Packer(program, context.backend).run();
  return program;
}

}  // namespace snug
