#include <algorithm>
#include <optional>

#include "analysis/cost.h"
#include "ir/loss.h"
#include "report/chart.h"
#include "report/moments.h"
#include "report/text.h"
#include "report/text_parts.h"

namespace snug::report {

namespace {

constexpr std::size_t kLargestValues = 6;
constexpr int kAxisWidth = 13;  // of the numbers left of the curve
constexpr int kCurveWidth = kTextWidth - kAxisWidth - 2;
constexpr int kCurveRows = 8;

void put_fullest_moment(std::string& out, const Plan& plan, const PeakMoment& peak) {
  const Section* section = plan.program.find_section(peak.section);
  if (section == nullptr || section->nodes.empty()) return;
  put(out, "Fullest moment {}\n", shorten(describe_node(section->nodes[static_cast<std::size_t>(peak.node)]), kTextWidth - 15));
  put(out, "{:15}section {}, node {} of {}; the largest values alive then:\n", "", to_string(peak.section), peak.node,
      section->nodes.size());
  Bytes rest;
  for (std::size_t i = 0; i < peak.largest.size(); ++i) {
    const LiveValue& value = peak.largest[i];
    if (i < kLargestValues) {
      put(out, "{:15}{:>10}  {:<10}  {}\n", "", format_bytes(value.size), name_of(value.memory_class), shorten(value.name, 41));
    } else {
      rest += value.size;
    }
  }
  if (peak.largest.size() > kLargestValues) {
    put(out, "{:15}{:>10}  in {} more\n", "", format_bytes(rest),
        format_count(static_cast<std::int64_t>(peak.largest.size() - kLargestValues)));
  }
}

// Stretches of the step along the curve: forward ends where backward (or what it recomputes) begins.
std::vector<Stretch> stretches_of(const Program& program, const std::vector<SectionMoments>& step, std::size_t nodes) {
  std::vector<Stretch> stretches;
  std::size_t at = 0;
  const auto end_at = [&](std::string_view name, std::size_t end) {
    const int column = static_cast<int>(end * kCurveWidth / nodes);
    if (end != at) stretches.push_back({.name = name, .end = column});
    at = end;
  };
  for (const SectionMoments& moments : step) {
    const Section& section = program.sections[moments.section];
    const std::size_t begin = at;
    if (section.kind == SectionKind::micro) {
      const auto backward =
          std::find_if(section.nodes.begin(), section.nodes.end(), [](const Node& node) { return node.phase != Phase::forward; });
      end_at("forward", begin + static_cast<std::size_t>(backward - section.nodes.begin()));
      end_at("backward", begin + section.nodes.size());
    } else {
      end_at("update", begin + section.nodes.size());
    }
  }
  return stretches;
}

void put_curve(std::string& out, const Plan& plan, const PeakMoment& peak) {
  const std::vector<SectionMoments> step = moments_of_step(plan);
  const Bytes top = plan.planned_peak_bytes;
  std::vector<double> shares;
  std::optional<std::size_t> fullest;  // index along the step; none if evaluation needs more
  for (const SectionMoments& moments : step) {
    if (plan.program.sections[moments.section].id() == peak.section) {
      fullest = shares.size() + static_cast<std::size_t>(peak.node);
    }
    for (const ByClass& alive : moments.alive) shares.push_back(share_of(total_of(alive), top));
  }
  if (shares.empty()) return;
  put(out, "Memory over a step, node by node");
  if (const std::int64_t runs = microbatches(plan.program); runs > 1) put(out, "; forward and backward run {} times", runs);
  put(out, "\n");

  const double floor = share_of(total_of(states_by_class(plan.program)), top);
  const std::vector<std::string> lines = draw_area(to_columns(shares, kCurveWidth), floor, kCurveRows);
  for (int row = 0; row < kCurveRows; ++row) {
    const bool labeled = row % (kCurveRows / 2) == 0;
    const Bytes level((top.count() * (kCurveRows - row)) / kCurveRows);
    put(out, "{:>{}} {}{}\n", labeled ? format_bytes(level) : "", kAxisWidth - 1, labeled ? "┤" : "│",
        lines[static_cast<std::size_t>(row)]);
  }
  put(out, "{:>{}} {}\n", "0", kAxisWidth - 1, draw_axis(stretches_of(plan.program, step, shares.size())));
  if (fullest) {
    const int column = static_cast<int>((2 * *fullest + 1) * kCurveWidth / (2 * shares.size()));
    put(out, "{:>{}} {}\n", "", kAxisWidth, draw_mark(column, "fullest moment", kCurveWidth));
  }
  if (floor * kCurveRows >= 0.5) put(out, "{:>{}}░ is kept from step to step\n", "", kAxisWidth + 1);
}

}  // namespace

std::string inexact_methods(const Methods& methods) {
  std::string text;
  if (methods.statistics_group) put(text, ", batch norm over groups of {}", *methods.statistics_group);
  if (methods.precision != DType::f32) put(text, ", {}", precision_name(*methods.precision));
  if (methods.nonzero) put(text, ", {:g}% of the convolutions' weights", 100 * *methods.nonzero);
  if (methods.compress_bits) put(text, ", activations kept in {} bits", *methods.compress_bits);
  return text;
}

std::string plan_text(const Plan& plan, const PlanContext& context) {
  const PeakMoment peak = peak_moment(plan);
  std::string out;
  put(out, "{}\n", describe(plan, context));
  put_classes(out, plan, peak);
  put(out, "\n");
  if (const Bytes host = plan.host.planned_peak_bytes; host > Bytes(0))
    put(out, "Host memory{:>14}  for values that wait there, beside the arena\n", format_bytes(host));
  put(out, "Bound{:>20}  no placement is lower; this one is {:.2f}% above\n\n", format_bytes(plan.bound_bytes),
      100 * share_of(plan.planned_peak_bytes - plan.bound_bytes, plan.bound_bytes));
  put_fullest_moment(out, plan, peak);
  put(out, "\n");
  put_curve(out, plan, peak);
  put(out, "\n");
  put_parameters_and_flops(out, plan, flops_of_step(plan.program));
  if (context.predicted_step_seconds) {
    const Throughput throughput = throughput_of(plan.program);
    put(out, "Predicted      {:.1f} {}/s, {:.4g} s a step ({})\n",
        throughput.rate(static_cast<double>(plan.program.batch) / *context.predicted_step_seconds), throughput.unit,
        *context.predicted_step_seconds, context.costs);
  }
  put(out, "Planned in     {:.3f} s\n", plan.plan_seconds);
  return trim_lines(out);
}

std::string instructions_text(const Backend& backend) {
  if (backend.instructions.empty()) return {};
  const std::string& limit = backend.instructions_limit;
  return fmt::format("Instructions: {}{}\n", backend.instructions, limit.empty() ? "" : fmt::format(" ({})", limit));
}

std::string kernels_text(std::span<const KernelUse> kernels) {
  constexpr std::string_view kRow = "{:>5}{:>11}  {:<26} {}\n";
  std::string out = "Kernels of all sections\n";
  put(out, kRow, "nodes", "workspace", "op", "kernel");
  for (const KernelUse& use : kernels) {
    put(out, kRow, use.nodes, use.workspace == Bytes(0) ? "" : format_bytes(use.workspace), use.op,
        use.kernel + (use.is_reference && !use.kernel.starts_with("reference_") ? " (plain reference loops)" : ""));
    for (const KernelRefusal& refusal : use.refusals) {
      put(out, "{:18}not for {} node{}: {}\n", "", refusal.nodes, refusal.nodes == 1 ? "" : "s", refusal.reason);
    }
  }
  return trim_lines(out);
}

}  // namespace snug::report
