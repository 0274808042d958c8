// The CUDA backend for tests: one device for all of them.
#pragma once

#include <optional>
#include <string>

#include "ir/kernel.h"

namespace snug::conformance {

// Nothing, and why, where there is none; SNUG_REQUIRE_CUDA makes that an error, so that a run on a GPU cannot pass by skipping.
std::optional<Backend> open_cuda(std::string& why_not);

}  // namespace snug::conformance
