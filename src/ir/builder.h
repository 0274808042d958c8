// Appends nodes to a section: infers types, names values, and keeps the current version of every state.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "ir/program.h"
#include "ir/unique_names.h"

namespace snug {

struct EmitOptions {
  std::string name;  // of the first output; made unique
  std::string layer;
  Role role = Role::activation;
  Phase phase = Phase::forward;
  // States that outputs 0, 1, ... write; shorter than the outputs or none() where an output is transient.
  std::vector<StateId> writes = {};
};

class SectionBuilder {
 public:
  // `states` and `section` must outlive the builder; states may be appended to while it lives.
  SectionBuilder(const std::vector<State>& states, Section& section);

  // The state's current version as a value of this section.
  ValueId read(StateId state);

  std::vector<ValueId> emit(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, const EmitOptions& options);
  // The same, but returns the node instead of appending it: the section already has its outputs.
  Node make(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, const EmitOptions& options);

  // The state's next version, for a node that is built by hand.
  ValueId write(StateId state) { return new_version(state); }

  // A transient value that no node makes yet; its name is made unique, unless it is empty.
  ValueId add_value(Value value);

  const Value& value(ValueId id) const { return section_.value(id); }
  Section& section() { return section_; }

 private:
  ValueId new_version(StateId state);

  const std::vector<State>& states_;
  Section& section_;
  std::unordered_map<StateId, ValueId> current_;
  UniqueNames names_;
};

// Names appear unquoted in the text form: letters, digits and . _ - / only; UserError otherwise.
void check_name(std::string_view name);

}  // namespace snug
