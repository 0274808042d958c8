#include "passes/state_types.h"

namespace snug {

void follow_states(Program& program) {
  for (Section& section : program.sections) {
    for (Value& value : section.values) {
      if (value.is_state()) value.type = program.state(value.state).type;
    }
  }
}

}  // namespace snug
