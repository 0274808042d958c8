#include "passes/model/narrow.h"

#include <vector>

#include "base/error.h"
#include "ir/op.h"
#include "passes/model/state_types.h"

namespace snug {

namespace {

// Marks the states that an op reads as an operand that stays wide.
void find_wide_states(const Section& forward, std::vector<bool>& wide) {
  for (const Node& node : forward.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const StateId state = forward.state_of(node.inputs[i]);
      if (state.valid() && ((node.op->wide_inputs >> i) & 1U) != 0) wide[state.index()] = true;
    }
  }
}

void retype(Section& forward, DType dtype) {
  for (Node& node : forward.nodes) {
    if (node.op->set_result_dtype != nullptr) node.op->set_result_dtype(node.attributes, dtype);
    const std::vector<Type> types = infer_types(*node.op, {types_of(forward, node).inputs, node.attributes});
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Value& output = forward.value(node.outputs[i]);
      if (!output.is_state()) output.type = types[i];
    }
  }
}

}  // namespace

Program narrow(Program model, DType dtype) {
  SNUG_CHECK(is_floating(dtype), "a model cannot be stored in {}", name_of(dtype));
  std::vector<bool> wide(model.states.size(), false);
  for (const Section& section : model.sections) {
    if (section.kind == SectionKind::forward) find_wide_states(section, wide);
  }
  const DType wide_dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  for (std::size_t i = 0; i < model.states.size(); ++i) {
    State& state = model.states[i];
    if (state.type.dtype != DType::f32) continue;
    const bool stays = wide[i] || state.role == Role::statistic;
    state.type.dtype = stays ? wide_dtype : dtype;
  }
  follow_states(model);
  for (Section& section : model.sections) {
    if (section.kind == SectionKind::forward) retype(section, dtype);
  }
  return model;
}

}  // namespace snug
