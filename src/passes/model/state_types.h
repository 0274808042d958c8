// Used by passes that change how states are stored.
#pragma once

#include "ir/program.h"

namespace snug {

// Gives every version of a state, in all sections, the element type and layout that its state has now.
void follow_states(Program& program);

}  // namespace snug
