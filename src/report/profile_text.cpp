#include <algorithm>

#include "ir/op.h"
#include "report/chart.h"
#include "report/layers.h"
#include "report/moments.h"
#include "report/text.h"
#include "report/text_parts.h"

namespace snug::report {

namespace {

constexpr std::size_t kMostLayers = 24;  // above that they are grouped by two components of their names
constexpr std::size_t kMostGroups = 48;  // and above that by one
constexpr std::size_t kLayerRows = 16;
constexpr std::size_t kMomentRows = 8;
constexpr std::size_t kOpRows = 10;

std::vector<LayerUse> grouped_layers(const Plan& plan, const PeakMoment& peak) {
  std::vector<LayerUse> layers = layers_at_peak(plan, peak);
  if (layers.size() <= kMostLayers) return layers;
  std::vector<LayerUse> groups = group_layers(layers, 2);
  return groups.size() <= kMostGroups ? groups : group_layers(layers, 1);
}

struct LayerRow {
  std::string name;
  Bytes bytes;
  std::int64_t parameters = 0;
};

// The largest rows, and one for all the others.
std::vector<LayerRow> layer_rows(std::vector<LayerUse> layers) {
  std::stable_sort(layers.begin(), layers.end(),
                   [](const LayerUse& a, const LayerUse& b) { return total_of(a.at_peak) > total_of(b.at_peak); });
  std::vector<LayerRow> rows;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i < kLayerRows) {
      rows.push_back({.name = layers[i].name, .bytes = total_of(layers[i].at_peak), .parameters = layers[i].parameters});
      continue;
    }
    if (i == kLayerRows) rows.push_back({.name = fmt::format("{} more", layers.size() - kLayerRows)});
    rows.back().bytes += total_of(layers[i].at_peak);
    rows.back().parameters += layers[i].parameters;
  }
  return rows;
}

void put_layers(std::string& out, const Plan& plan, const PeakMoment& peak) {
  constexpr int kBarWidth = 20;
  const std::vector<LayerRow> rows = layer_rows(grouped_layers(plan, peak));
  // Bars are relative to the largest layer, which comes first; "more" is not a layer.
  const auto bar = [&](std::size_t i) { return i < kLayerRows ? share_of(rows[i].bytes, rows[0].bytes) : 0.0; };
  put(out, "{:<24}{:>10}  {:>6}  {:{}}  {:>13}\n", "By layer at the peak", "bytes", "share", "", kBarWidth, "parameters");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LayerRow& row = rows[i];
    put(out, "  {:<22}{:>10}  {:>5.1f}%  {}  {:>13}\n", shorten(row.name, 22), format_bytes(row.bytes),
        100 * share_of(row.bytes, plan.planned_peak_bytes), padded_bar(bar(i), kBarWidth),
        row.parameters == 0 ? "" : format_count(row.parameters));
  }
}

void put_moments(std::string& out, const Plan& plan) {
  const std::vector<Moment> moments = largest_moments(plan.program, moments_of_step(plan));
  put(out, "{:<24}{:>10}  {:>6}  {:>10}  {}\n", "By moment", "bytes", "share", "workspace", "running");
  for (std::size_t i = 0; i < moments.size() && i < kMomentRows; ++i) {
    const Moment& moment = moments[i];
    const Node& node = plan.program.sections[moment.section].nodes[moment.node];
    const Bytes workspace = moment.alive[static_cast<std::size_t>(MemoryClass::workspace)];
    put(out, "  {:<22}{:>10}  {:>5.1f}%  {:>10}  {}\n", shorten(first_components(node.layer, 2), 22),
        format_bytes(total_of(moment.alive)), 100 * share_of(total_of(moment.alive), plan.planned_peak_bytes),
        workspace == Bytes(0) ? "" : format_bytes(workspace), shorten(node.op->name, 24));
  }
}

void put_ops(std::string& out, const StepFlops& flops) {
  constexpr int kBarWidth = 12;
  const auto all = static_cast<double>(flops.step.total());
  put(out, "{:<28}{:>9}  {:>6}  {:{}}  {:>5}  {}\n", "By op", "FLOPs", "share", "", kBarWidth, "nodes", "phase");
  const auto row = [&](std::string_view name, std::int64_t count, std::int64_t nodes, std::string_view phase) {
    const double share = static_cast<double>(count) / all;
    const double of_largest = phase.empty() ? 0.0 : static_cast<double>(count) / static_cast<double>(flops.ops.front().flops);
    put(out, "  {:<26}{:>9}  {:>5.1f}%  {}  {:>5}  {}\n", shorten(name, 26), format_flops(count), 100 * share,
        padded_bar(of_largest, kBarWidth), nodes, phase);
  };
  OpFlops rest;
  std::size_t others = 0;
  for (std::size_t i = 0; i < flops.ops.size() && flops.ops[i].flops > 0; ++i) {
    const OpFlops& op = flops.ops[i];
    if (i < kOpRows) {
      row(op.op, op.flops, op.nodes, name_of(op.phase));
    } else {
      rest.flops += op.flops;
      rest.nodes += op.nodes;
      ++others;
    }
  }
  if (others > 0) row(fmt::format("{} more", others), rest.flops, rest.nodes, "");
}

}  // namespace

std::string profile_text(const Plan& plan, const PlanContext& context) {
  const PeakMoment peak = peak_moment(plan);
  const StepFlops flops = flops_of_step(plan.program);
  std::string out;
  put(out, "{}\n", describe(plan, context));
  put_classes(out, plan, peak);
  put(out, "\n");
  put_layers(out, plan, peak);
  put(out, "\n");
  put_moments(out, plan);
  put(out, "\n");
  put_ops(out, flops);
  put(out, "\n");
  put_parameters_and_flops(out, plan, flops);
  return trim_lines(out);
}

}  // namespace snug::report
