// What more memory would gain: the frontier around a plan, and the effect of each of its methods.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "plan/explain.h"
#include "plan/frontier.h"

namespace snug::report {

// The plan's neighbors on the frontier, the fastest and the smallest, and the steps that led to it.
std::string explanation_text(const Frontier& frontier, const FrontierPoint& chosen, std::span<const MethodStep> steps);

// One object per point: bytes, seconds, microbatch, checkpoint, fused_update, workspace_limit_bytes.
nlohmann::ordered_json frontier_json(const Frontier& frontier);
// The same for every plan that was compared; bytes are its lower bound, before placement.
nlohmann::ordered_json considered_json(const Frontier& frontier);
// One object per step: method, bytes, seconds.
nlohmann::ordered_json methods_json(std::span<const MethodStep> steps);
// All three as fields `frontier`, `considered` and `methods`.
void put_explanation(nlohmann::ordered_json& json, const Frontier& frontier, std::span<const MethodStep> steps);

}  // namespace snug::report
