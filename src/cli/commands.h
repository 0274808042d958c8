// One function a command.
#pragma once

#include "cli/flags.h"

namespace snug::cli {

// How many examples a step takes, and how many of them at a time when the user says so.
struct Examples {
  std::int64_t batch = 0;
  std::optional<std::int64_t> microbatch;
};
// UserError when the model is missing, or --microbatch is more than --batch.
Examples examples_of(const Flags& flags);

// UserError when a file that the user wants written is one that a run keeps in its folder.
void refuse_run_files(const Flags& flags);

// Each writes to standard output. UserError about flags that are missing or do not go together.
void run_plan(const Flags& flags);
void run_profile(const Flags& flags);
void run_paper_profile(const Flags& flags);  // run_profile with --accounting paper
void run_train(const Flags& flags);
void run_sweep(const Flags& flags);
void run_eval(const Flags& flags);
void run_predict(const Flags& flags);
void run_generate(const Flags& flags);
void run_export(const Flags& flags);
void run_average(const Flags& flags);
void run_bleu(const Flags& flags);
void run_report(const Flags& flags);
void run_data(const Flags& flags);

}  // namespace snug::cli
