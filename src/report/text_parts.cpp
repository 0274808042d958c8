#include "report/text_parts.h"

#include <array>
#include <cmath>

#include "ir/loss.h"
#include "ir/op.h"
#include "report/chart.h"
#include "report/layers.h"
#include "report/text.h"

namespace snug::report {

std::string format_flops(std::int64_t flops) {
  static constexpr std::array<std::string_view, 6> kUnits{"K", "M", "G", "T", "P", "E"};
  if (flops < 1000) return fmt::format("{}", flops);
  double scaled = static_cast<double>(flops) / 1e3;
  std::size_t unit = 0;
  // 999.996 would be written 1000.00.
  while (scaled >= 999.995 && unit + 1 < kUnits.size()) {
    scaled /= 1e3;
    ++unit;
  }
  return fmt::format("{:.2f} {}", scaled, kUnits[unit]);
}

std::string format_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

double share_of(Bytes part, Bytes whole) {
  return whole == Bytes(0) ? 0.0 : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string shorten(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  return std::string(text.substr(0, width - 3)) + "...";
}

std::string padded_bar(double share, int width) {
  std::string bar = draw_bar(share, width);
  bar.append(static_cast<std::size_t>(width - columns_of(bar)), ' ');
  return bar;
}

std::string trim_lines(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out.erase(out.find_last_not_of(' ') + 1);
    out += c;
  }
  return out;
}

std::string describe(const Plan& plan, const PlanContext& context) {
  const Program& program = plan.program;
  std::string text = fmt::format("{}, batch {}", program.name, program.batch);
  if (program.microbatch != program.batch) put(text, " in microbatches of {}", program.microbatch);
  const Methods& methods = plan.methods;
  if (methods.statistics_group) put(text, ", batch norm over groups of {}", *methods.statistics_group);
  put(text, "\n{}, ", precision_name(methods.precision.value_or(DType::f32)));
  if (methods.nonzero) put(text, "{:g}% of the convolutions' weights, ", 100 * *methods.nonzero);
  const std::string strategy = methods.checkpoint ? to_string(*methods.checkpoint) : "as planned";
  put(text, "{}", strategy == "none" ? "no checkpointing" : "checkpointing " + strategy);
  if (methods.compress_bits) put(text, ", activations kept in {} bits", *methods.compress_bits);
  put(text, ", {} kernels, {} thread{}\n", context.backend, context.threads, context.threads == 1 ? "" : "s");
  return text;
}

std::string describe_node(const Node& node) {
  return fmt::format("{} of {} ({})", name_of(node.phase), node.layer.empty() ? "the step" : node.layer, node.op->name);
}

void put_classes(std::string& out, const Plan& plan, const PeakMoment& peak) {
  constexpr int kBarWidth = 40;
  const auto line = [&](std::string_view name, Bytes bytes) {
    const double share = share_of(bytes, plan.planned_peak_bytes);
    put(out, "  {:<13}{:>10}  {:>5.1f}%  {}\n", name, format_bytes(bytes), 100 * share, draw_bar(share, kBarWidth));
  };
  put(out, "{:<15}{:>10}\n", "Planned peak", format_bytes(plan.planned_peak_bytes));
  for (std::size_t c = 0; c < peak.by_class.size(); ++c) line(name_of(static_cast<MemoryClass>(c)), peak.by_class[c]);
  line("gaps", peak.gap_bytes);
}

void put_parameters_and_flops(std::string& out, const Plan& plan, const StepFlops& flops) {
  const ParameterCount parameters = count_parameters(plan.program);
  put(out, "Parameters     {}", format_count(parameters.all));
  if (parameters.trainable != parameters.all) put(out, " ({} trained)", format_count(parameters.trainable));
  const bool of_images = throughput_of(plan.program).unit == "images";
  put(out, "\nFLOPs an {} {} forward, {} backward", of_images ? "image" : "example", format_flops(flops.per_example.forward),
      format_flops(flops.per_example.backward));
  if (flops.step.recompute != 0) {
    put(out, ", {} recomputed ({:.3f} times the step without)", format_flops(flops.per_example.recompute),
        flops_ratio(flops.step));
  }
  put(out, "\n");
}

}  // namespace snug::report
