// A plan in the installed API's own words.
#pragma once

#include <optional>

#include "plan/plan.h"
#include <snug/memory.h>

namespace snug {

// Of a plan that says all of its methods but, from a file of an earlier version, its checkpoint strategy.
MemorySummary summarize(const Plan& plan, std::optional<Bytes> plain_peak_bytes);

}  // namespace snug
