// One function a command.
#pragma once

#include "cli/flags.h"

namespace snug::cli {

// Each writes to standard output. UserError about flags that are missing or do not go together.
void run_plan(const Flags& flags);
void run_profile(const Flags& flags);
void run_train(const Flags& flags);
void run_eval(const Flags& flags);
void run_export(const Flags& flags);
void run_data(const Flags& flags);

}  // namespace snug::cli
