// What --json prints. Fields may be added but never renamed: programs depend on them.
#pragma once

#include <span>

#include <nlohmann/json.hpp>

#include "plan/plan.h"
#include "report/kernels.h"
#include "report/plan_context.h"

namespace snug::report {

// Bytes by class at the peak and `gap_bytes` sum to `planned_peak_bytes`, which is the device's arena; `planned_host_bytes`
// exists where values lie in host memory. FLOPs are of a whole step with all its microbatches; those under `per_image` are of one
// image, those under `per_example` of one example of anything else.
nlohmann::ordered_json plan_json(const Plan& plan, const PlanContext& context);

// The same, and where the bytes and FLOPs go: by layer, by node, by op.
nlohmann::ordered_json profile_json(const Plan& plan, const PlanContext& context);

nlohmann::ordered_json kernels_json(std::span<const KernelUse> kernels);

// The instruction set that the backend's libraries use, and what limits it; null where this does not apply.
nlohmann::ordered_json instructions_json(const Backend& backend);

}  // namespace snug::report
