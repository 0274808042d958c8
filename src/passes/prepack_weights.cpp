#include "passes/prepack_weights.h"

#include <algorithm>
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
    for (std::size_t i = 0; i < micro.nodes.size(); ++i) {
      if (micro.nodes[i].op != &ops::conv2d_grad_input) continue;
      const Value weight = micro.value(micro.nodes[i].inputs[1]);
      if (!weight.is_state() || is_written(micro, weight.state)) continue;
      const NodeTypes types = types_of(micro, micro.nodes[i]);
      const auto layout = backend_.preferred_weight_layout(backend_.query(micro.nodes[i], types));
      if (!layout || *layout == weight.type.layout) continue;
      const StateId packed = copy_of(weight.state, *layout);
      micro.nodes[i].inputs[1] = SectionBuilder(program_.states, micro).read(packed);
    }
  }

  static bool is_written(const Section& section, StateId state) {
    return std::any_of(section.values.begin(), section.values.end(),
                       [&](const Value& value) { return value.state == state && value.version > 0; });
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
    for (const Copy& copy : copies_) {
      const auto writes = [&](const Node& node) {
        return std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId id) { return section.value(id).state == copy.weight; });
      };
      const auto last = std::find_if(section.nodes.rbegin(), section.nodes.rend(), writes);
      if (last == section.nodes.rend()) continue;
      const auto behind = section.nodes.rend() - last;
      const Phase phase = last->phase;
      SectionBuilder builder(program_.states, section);
      emit_copy(builder, copy, phase);
      std::rotate(section.nodes.begin() + behind, section.nodes.end() - 1, section.nodes.end());
    }
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
