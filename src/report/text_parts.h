// Pieces that the texts of plan and profile share.
#pragma once

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/plan.h"
#include "report/flops.h"
#include "report/plan_context.h"

namespace snug::report {

inline constexpr int kTextWidth = 80;

template <typename... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

double share_of(Bytes part, Bytes whole);

// `text`, or its beginning and "..." when it is longer than `width`.
std::string shorten(std::string_view text, std::size_t width);

// A bar padded with spaces to its full width.
std::string padded_bar(double share, int width);

// The text without spaces at the ends of lines.
std::string trim_lines(std::string_view text);

// Two lines: the model and its batch, and how it is trained.
std::string describe(const Plan& plan, const PlanContext& context);

// "backward of head.relu (relu_grad)"
std::string describe_node(const Node& node);

// The planned peak and one line per class, with bars.
void put_classes(std::string& out, const Plan& plan, const PeakMoment& peak);

// "1,456,858 parameters", and FLOPs per image by phase.
void put_parameters_and_flops(std::string& out, const Plan& plan, const StepFlops& flops);

}  // namespace snug::report
