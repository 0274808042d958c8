#include "passes/model/state_types.h"

namespace snug {

void follow_states(Program& program) {
  for (Section& section : program.sections) {
    for (Value& value : section.values) {
      if (!value.is_state()) continue;
      const Type& type = program.state(value.state).type;
      value.type.dtype = type.dtype;
      value.type.layout = type.layout;
    }
  }
}

}  // namespace snug
