// A budget for the whole process, as the operating system counts it; on a GPU for the device, as its driver does. What training
// takes there beside its arena is measured by trials, a few steps each in a process of its own; the rest is the arena's budget.
#pragma once

#include "api/run.h"

namespace snug {

// The largest budget for the arena with which a trial stayed inside the recipe's process budget. DoesNotFit, naming the smallest
// process budget that works, when there is none. Call it before the process starts threads.
Bytes arena_budget(const settings::Recipe& recipe, const RunSettings& settings);

}  // namespace snug
