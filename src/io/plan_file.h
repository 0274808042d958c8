// A plan as text: the program, then where every byte lies. Reading it back takes no search, so a resumed run gets the plan that
// it began with, even from a version of Snug that would place it differently.
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
// Offsets count from the start of the arena of a value's memory space. Where states lie in host memory, the first line continues
// with `host_persistent` and the offset at which transient values begin there.
//
// A file ends with the checksum of all lines before it: an edited plan could silently compute something else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ir/kernel.h"
#include "plan/plan.h"

namespace snug::io {

std::string print_plan(const Plan& plan);

// UserError with one sentence when the text is not a plan, or is inconsistent.
Plan parse_plan(std::string_view text);

// The same as a file. UserError naming it when it cannot be written or read, is not a plan, or was changed since.
void write_plan_file(const std::filesystem::path& path, const Plan& plan);
Plan read_plan_file(const std::filesystem::path& path);
// A run's own plan: accepts one without a checksum too, as earlier versions wrote them.
Plan read_plan_file_of_run(const std::filesystem::path& path);

// Makes a plan from elsewhere one for this model (a program for the plan's microbatch, as lower_model() makes it): replaces how
// images are normalized and augmented, which takes no memory. UserError unless all else is the same: batch, states, forward pass,
// optimizer.
void adopt(Plan& plan, const Program& model);

// Why the plan cannot run on this backend, as a part of a sentence: a kernel that does not exist, or does not accept its node
// with the workspace in the plan. A plan is made for one backend, library version and instruction set.
std::optional<std::string> find_kernel_misfit(const Plan& plan, const Backend& backend);
// UserError with that and the remedy.
void check_kernels(const Plan& plan, const Backend& backend);

}  // namespace snug::io
