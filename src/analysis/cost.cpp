#include "analysis/cost.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/op.h"

namespace snug {

namespace {

std::int64_t bytes_moved(const Section& section, const Node& node) {
  if (node.op->is_view) return 0;
  Bytes total;
  for (const ValueId id : node.inputs) total += section.value(id).type.bytes();
  for (const ValueId id : node.outputs) total += section.value(id).type.bytes();
  return total.count();
}

}  // namespace

std::string cost_key(const Section& section, const Node& node) {
  std::string key(node.op->name);
  for (const auto& [name, value] : node.attributes.entries()) {
    if (name == "key") continue;  // which random numbers, not how many
    key += ' ';
    key += name;
    key += '=';
    std::visit([&](const auto& constant) { key += fmt::format("{}", constant); }, value);
  }
  for (const ValueId id : node.inputs) key += " " + to_string(section.value(id).type);
  key += " ->";
  for (const ValueId id : node.outputs) key += " " + to_string(section.value(id).type);
  return key;
}

double node_seconds(const CostTable& costs, const Section& section, const Node& node) {
  if (!costs.measured.empty()) {
    const auto found = costs.measured.find(cost_key(section, node));
    if (found != costs.measured.end()) return found->second;
  }
  const double arithmetic = static_cast<double>(count_flops(section, node)) / costs.flops_per_second;
  const double traffic = static_cast<double>(bytes_moved(section, node)) / costs.bytes_per_second;
  return costs.seconds_per_node + std::max(arithmetic, traffic);
}

std::int64_t microbatches(const Program& program) { return (program.batch + program.microbatch - 1) / program.microbatch; }

double step_seconds(const CostTable& costs, const Program& program) {
  double seconds = 0;
  for (const SectionKind kind : {SectionKind::micro, SectionKind::update}) {
    const Section* section = program.find_section(kind);
    if (section == nullptr) continue;
    double once = 0;
    for (const Node& node : section->nodes) once += node_seconds(costs, *section, node);
    seconds += kind == SectionKind::micro ? once * static_cast<double>(microbatches(program)) : once;
  }
  return seconds;
}

}  // namespace snug
