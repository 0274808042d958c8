#include "passes/prepack_weights.h"

#include <optional>

#include "ir/builder.h"
#include "ops/ops.h"

namespace snug {

namespace {

struct Copy {
  StateId weight, packed;
};

class Packer {
 public:
  Packer(Program& program, const Backend& backend) : program_(program), backend_(backend) {}

  void run() {
    for (Section& section : program_.sections) {
      if (section.kind == SectionKind::micro) redirect(section);
    }
    if (copies_.empty()) return;
    Section derive{.kind = SectionKind::derive, .values = {}, .nodes = {}};
    SectionBuilder builder(program_.states, derive);
    for (const Copy& copy : copies_) emit_copy(builder, copy, Phase::update);
    for (Section& section : program_.sections) {
      if (section.kind != SectionKind::micro) follow_writes(section);
    }
    program_.sections.push_back(std::move(derive));
  }

 private:
  // Lets data gradients read a copy of their weight where the kernel wants another layout than the weight has.
  void redirect(Section& micro) {
    const std::vector<std::size_t> writers = last_writers(micro);
    SectionBuilder builder(program_.states, micro);
    for (Node& node : micro.nodes) {
      if (node.op != &ops::conv2d_grad_input) continue;
      const Value weight = micro.value(node.inputs[1]);
      if (!weight.is_state() || writers[weight.state.index()] != kNobody) continue;
      const NodeTypes types = types_of(micro, node);
      const auto layout = backend_.preferred_weight_layout(backend_.query(node, types));
      if (layout && *layout != weight.type.layout) node.inputs[1] = builder.read(copy_of(weight.state, *layout));
    }
  }

  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  // For every state, the last node that writes it.
  std::vector<std::size_t> last_writers(const Section& section) const {
    std::vector<std::size_t> writers(program_.states.size(), kNobody);
    for (std::size_t i = 0; i < section.nodes.size(); ++i) {
      for (const ValueId id : section.nodes[i].outputs) {
        if (section.value(id).is_state()) writers[section.value(id).state.index()] = i;
      }
    }
    return writers;
  }

  // The state that holds the weight in this layout, made when it is first asked for.
  StateId copy_of(StateId weight, const Layout& layout) {
    for (const Copy& copy : copies_) {
      if (copy.weight == weight && program_.state(copy.packed).type.layout == layout) return copy.packed;
    }
    State packed{.name = {}, .type = program_.state(weight).type, .role = Role::workspace};
    packed.type.layout = layout;
    const std::string wanted = program_.state(weight).name + ".packed";
    packed.name = wanted;
    for (int number = 2; program_.find_state(packed.name).valid(); ++number) packed.name = wanted + "." + std::to_string(number);
    program_.states.push_back(std::move(packed));
    copies_.push_back({.weight = weight, .packed = StateId(program_.states.size() - 1)});
    return copies_.back().packed;
  }

  void emit_copy(SectionBuilder& builder, const Copy& copy, Phase phase) const {
    builder.emit(ops::relayout, {builder.read(copy.weight)}, {{"channels_last", std::int64_t{0}}},
                 {.layer = program_.state(copy.weight).name, .role = Role::workspace, .phase = phase, .writes = {copy.packed}});
  }

  // Puts a copy behind the last write of each weight that the section writes.
  void follow_writes(Section& section) {
    const std::vector<std::size_t> writers = last_writers(section);
    std::vector<std::vector<std::size_t>> behind(section.nodes.size());  // copies to make behind each node
    SectionBuilder builder(program_.states, section);
    for (const Copy& copy : copies_) {
      const std::size_t writer = writers[copy.weight.index()];
      if (writer == kNobody) continue;
      behind[writer].push_back(section.nodes.size());
      emit_copy(builder, copy, section.nodes[writer].phase);
    }
    std::vector<Node> ordered;
    for (std::size_t i = 0; i < behind.size(); ++i) {
      ordered.push_back(std::move(section.nodes[i]));
      for (const std::size_t copy : behind[i]) ordered.push_back(std::move(section.nodes[copy]));
    }
    section.nodes = std::move(ordered);
  }

  Program& program_;
  const Backend& backend_;
  std::vector<Copy> copies_;
};

}  // namespace

Program prepack_weights(Program program, const PassContext& context) {
  if (context.backend.preferred_weight_layout != nullptr) Packer(program, context.backend).run();
  return program;
}

}  // namespace snug
