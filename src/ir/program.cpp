#include "ir/program.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ir/op.h"

namespace snug {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::parameter:
      return "parameter";
    case Role::gradient:
      return "gradient";
    case Role::optimizer:
      return "optimizer";
    case Role::statistic:
      return "statistic";
    case Role::activation:
      return "activation";
    case Role::activation_gradient:
      return "activation_gradient";
    case Role::workspace:
      return "workspace";
    case Role::input:
      return "input";
    case Role::scalar:
      return "scalar";
  }
  return "?";
}

std::string_view name_of(MemorySpace space) { return space == MemorySpace::device ? "device" : "host"; }

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::init:
      return "init";
    case Phase::forward:
      return "forward";
    case Phase::recompute:
      return "recompute";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
  }
  return "?";
}

std::string_view name_of(SectionKind kind) {
  switch (kind) {
    case SectionKind::init:
      return "init";
    case SectionKind::micro:
      return "micro";
    case SectionKind::update:
      return "update";
    case SectionKind::periodic:
      return "periodic";
    case SectionKind::eval:
      return "eval";
    case SectionKind::derive:
      return "derive";
    case SectionKind::forward:
      return "forward";
    case SectionKind::decode:
      return "decode";
  }
  return "?";
}

std::string to_string(const SectionId& id) {
  if (id.shape == RunShape{}) return std::string(name_of(id.kind));
  if (id.shape.length == 0) return fmt::format("{} of {}", name_of(id.kind), id.shape.examples);
  return fmt::format("{} of {}x{}", name_of(id.kind), id.shape.examples, id.shape.length);
}

Schedule schedule_of(SectionKind kind) {
  switch (kind) {
    case SectionKind::init:
      return Schedule::once;
    case SectionKind::micro:
      return Schedule::per_microbatch;
    case SectionKind::update:
      return Schedule::per_step;
    case SectionKind::periodic:
      return Schedule::periodically;
    case SectionKind::eval:
    case SectionKind::decode:
      return Schedule::for_evaluation;
    case SectionKind::derive:
      return Schedule::after_loading;
    case SectionKind::forward:
      return Schedule::never;
  }
  return Schedule::never;
}

const Section* Program::find_section(SectionId id) const {
  for (const Section& section : sections) {
    if (section.id() == id) return &section;
  }
  return nullptr;
}

Section* Program::find_section(SectionId id) {
  return const_cast<Section*>(std::as_const(*this).find_section(id));  // this program is not const
}

const Section& Program::section(SectionId id) const {
  const Section* found = find_section(id);
  SNUG_CHECK(found != nullptr, "the program of '{}' has no section {}", name, to_string(id));
  return *found;
}

Section& Program::section(SectionId id) {
  return const_cast<Section&>(std::as_const(*this).section(id));  // this program is not const
}

StateId Program::find_state(std::string_view state_name) const {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].name == state_name) return StateId(i);
  }
  return StateId::none();
}

NodeId find_loss(const Section& section) {
  const auto loss =
      std::find_if(section.nodes.begin(), section.nodes.end(), [](const Node& node) { return node.op->loss != nullptr; });
  return loss == section.nodes.end() ? NodeId::none() : NodeId(static_cast<std::size_t>(loss - section.nodes.begin()));
}

std::vector<ValueLife> value_lives(const Section& section) {
  std::vector<ValueLife> lives(section.values.size());
  for (std::size_t i = 0; i < section.nodes.size(); ++i) {
    const Node& node = section.nodes[i];
    for (const ValueId input : node.inputs) lives[input.index()].last_use = NodeId(i);
    for (const ValueId output : node.outputs) lives[output.index()] = {NodeId(i), NodeId(i)};
    if (node.workspace.valid()) lives[node.workspace.index()] = {NodeId(i), NodeId(i)};
  }
  return lives;
}

NodeTypes types_of(const Section& section, const Node& node) {
  NodeTypes types;
  types.inputs.reserve(node.inputs.size());
  types.outputs.reserve(node.outputs.size());
  const auto add = [&](std::vector<Type>& list, const Value& value) {
    list.push_back(value.type);
    if (value.space == MemorySpace::host) types.touches_host = true;
  };
  for (const ValueId id : node.inputs) add(types.inputs, section.value(id));
  for (const ValueId id : node.outputs) add(types.outputs, section.value(id));
  return types;
}

}  // namespace snug
