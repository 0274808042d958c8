// Reports as text, within 80 columns and ending in a newline. Only a refused kernel's reason may be longer.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "plan/plan.h"
#include "report/kernels.h"
#include "report/plan_context.h"

namespace snug::report {

// ", bf16, 30% of the convolutions' weights, activations kept in 4 bits": what changes more than the order of sums.
std::string inexact_methods(const Methods& methods);

// What training would take: the peak, its classes, where it is, the curve over a step, FLOPs.
std::string plan_text(const Plan& plan, const PlanContext& context);

// Where the bytes and FLOPs go: by class, layer, moment and op.
std::string profile_text(const Plan& plan, const PlanContext& context);

std::string kernels_text(std::span<const KernelUse> kernels);

// "Instructions: avx512_core_bf16 (AMX is left out: ...)", one line; empty where this does not apply.
std::string instructions_text(const Backend& backend);

// "429.60 M"; exact counts below a thousand.
std::string format_flops(std::int64_t flops);
// "1,456,858"
std::string format_count(std::int64_t count);

}  // namespace snug::report
