// What --json prints. The names of fields are a promise to whoever reads them: they may be added to, never renamed.
#pragma once

#include <span>

#include <nlohmann/json.hpp>

#include "plan/plan.h"
#include "report/kernels.h"
#include "report/plan_context.h"

namespace snug::report {

// Bytes by class at the fullest moment and `gap_bytes` sum to `planned_peak_bytes`, which is the device's arena;
// `planned_host_bytes` is there where values lie in host memory. FLOPs are of a whole step, all its
// microbatches included; those under `per_image` of one image, `per_example` of one example of anything else.
nlohmann::ordered_json plan_json(const Plan& plan, const PlanContext& context);

// The same, and where the bytes and FLOPs go: by layer, by node, by op.
nlohmann::ordered_json profile_json(const Plan& plan, const PlanContext& context);

nlohmann::ordered_json kernels_json(std::span<const KernelUse> kernels);

// The instructions that the backend's libraries compute with, and what limits them; null where there is no such thing.
nlohmann::ordered_json instructions_json(const Backend& backend);

}  // namespace snug::report
