#include "ir/builder.h"

#include <algorithm>

#include "base/error.h"

namespace snug {

void check_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ||
           c == '/';
  };
  if (name.empty() || name.size() > 200 || !std::all_of(name.begin(), name.end(), allowed)) {
    throw_user_error("'{}' is not a name; use 1 to 200 letters, digits and the characters . _ - /", name.substr(0, 200));
  }
}

SectionBuilder::SectionBuilder(const std::vector<State>& states, Section& section) : states_(states), section_(section) {
  for (std::size_t i = 0; i < section.values.size(); ++i) {
    const Value& value = section.values[i];
    if (!value.is_state()) {
      names_.take(value.name);
      continue;
    }
    ValueId& newest = current_[value.state];
    if (!newest.valid() || section.value(newest).version < value.version) newest = ValueId(i);
  }
}

ValueId SectionBuilder::read(StateId state) {
  const auto found = current_.find(state);
  if (found != current_.end()) return found->second;
  const State& s = states_[state.index()];
  section_.values.push_back({.name = s.name, .type = s.type, .role = s.role, .space = s.space, .state = state, .version = 0});
  return current_[state] = ValueId(section_.values.size() - 1);
}

ValueId SectionBuilder::new_version(StateId state) {
  const auto found = current_.find(state);
  const int version = found == current_.end() ? 1 : section_.value(found->second).version + 1;
  const State& s = states_[state.index()];
  section_.values.push_back(
      {.name = s.name, .type = s.type, .role = s.role, .space = s.space, .state = state, .version = version});
  return current_[state] = ValueId(section_.values.size() - 1);
}

ValueId SectionBuilder::add_value(Value value) {
  if (!value.name.empty()) value.name = names_.make(value.name);
  section_.values.push_back(std::move(value));
  return ValueId(section_.values.size() - 1);
}

std::vector<ValueId> SectionBuilder::emit(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                                          const EmitOptions& options) {
  section_.nodes.push_back(make(op, std::move(inputs), std::move(attributes), options));
  return section_.nodes.back().outputs;
}

Node SectionBuilder::make(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, const EmitOptions& options) {
  std::vector<Type> input_types;
  input_types.reserve(inputs.size());
  for (const ValueId id : inputs) input_types.push_back(section_.value(id).type);
  const std::vector<Type> output_types = infer_types(op, {input_types, attributes});

  Node node{.op = &op,
            .inputs = std::move(inputs),
            .outputs = {},
            .attributes = std::move(attributes),
            .phase = options.phase,
            .layer = options.layer,
            .kernel = {}};
  const MemorySpace space = op.output_space == nullptr ? MemorySpace::device : op.output_space(node.attributes);
  const std::string base = options.name.empty() ? std::string(op.name) : options.name;
  for (std::size_t i = 0; i < output_types.size(); ++i) {
    if (i < options.writes.size() && options.writes[i].valid()) {
      node.outputs.push_back(new_version(options.writes[i]));
      continue;
    }
    const std::string name = i < op.outputs.size() ? fmt::format("{}.{}", base, op.outputs[i]) : base;
    check_name(name);
    node.outputs.push_back(add_value({.name = name, .type = output_types[i], .role = options.role, .space = space}));
  }
  return node;
}

}  // namespace snug
