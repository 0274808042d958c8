// A plan as text: the program, then where every byte lies. Reading it back takes no search, so a resumed run gets the very plan
// it began with even from a Snug that would place it otherwise.
//
//   program small-cnn batch 100 microbatch 50
//   ...
//   placement red_zone 0 persistent 41216
//   place states 0 64 128
//   place init
//   place micro 41216 50048
//   methods precision=bf16 nonzero=0.5 microbatch=50 checkpoint=none
//   made_for 2 threads, AMD EPYC, avx512_core_bf16, oneDNN 2.6.3
//
// Offsets count from the start of the arena of a value's memory. Where states lie in host memory the first line goes on with
// `host_persistent` and where the transient values there begin.
//
// A file ends with the checksum of all lines before it: a plan that was edited would compute something else without a word.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ir/kernel.h"
#include "plan/plan.h"

namespace snug::io {

std::string print_plan(const Plan& plan);

// UserError with one sentence when the text is no plan, or one that does not hold together.
Plan parse_plan(std::string_view text);

// The same as a file. UserError, naming it, when it cannot be written, or read, or is no plan, or was changed since.
void write_plan_file(const std::filesystem::path& path, const Plan& plan);
Plan read_plan_file(const std::filesystem::path& path);
// A run's own plan: one without a checksum, as earlier versions left them, is taken too.
Plan read_plan_file_of_run(const std::filesystem::path& path);

// Makes a plan from elsewhere one for this model, which is the program of a model for the plan's microbatch, as lower_model()
// makes it: with the model's way to normalize and augment its images, which takes no memory. UserError unless all else is the
// same: batch, states, forward pass, optimizer.
void adopt(Plan& plan, const Program& model);

// What stands in the way of running the plan on this backend, as a part of a sentence: a kernel that is not there, or does not
// take its node in the workspace that the plan gives it. A plan is made for one backend, library version and instruction set.
std::optional<std::string> find_kernel_misfit(const Plan& plan, const Backend& backend);
// UserError with that and the way out.
void check_kernels(const Plan& plan, const Backend& backend);

}  // namespace snug::io
