#include "report/reference_kernels.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/cost.h"
#include "report/kernels.h"

namespace snug::report {

namespace {

constexpr std::size_t kNodesNamed = 3;

// A part of a run, of whose work a node's share is taken.
struct Part {
  const Section* section;
  double runs;
};

// Appends those nodes of the parts that matter.
void find_in(const std::vector<Part>& parts, const Backend& backend, std::vector<ReferenceNode>& found) {
  const CostTable costs{.seconds_per_node = 0};  // work alone
  double all = 0;
  std::map<std::string_view, double> by_op;
  for (const auto& [section, runs] : parts) {
    for (const Node& node : section->nodes) {
      const double work = runs * node_seconds(costs, *section, node);
      all += work;
      by_op[node.op->name] += work;
    }
  }
  // A library takes long to answer, so it is asked once about equal nodes, and only where all nodes of the op together matter.
  std::map<std::string, bool> answers;
  std::map<std::string_view, std::vector<ReferenceNode>> of_op;
  std::vector<std::string_view> order;
  for (const auto& [section, runs] : parts) {
    for (const Node& node : section->nodes) {
      if (!(by_op[node.op->name] > kShareThatMatters * all)) continue;
      const NodeTypes types = types_of(*section, node);
      const auto [known, is_new] =
          answers.try_emplace(node_key(*node.op, node.attributes, types.inputs, types.outputs) + " by " + node.kernel);
      if (is_new) known->second = is_on_reference(backend, *section, node);
      if (!known->second) continue;
      if (!of_op.contains(node.op->name)) order.push_back(node.op->name);
      of_op[node.op->name].push_back({.op = node.op->name,
                                      .layer = node.layer,
                                      .kernel = node.kernel,
                                      .section = section->kind,
                                      .share = runs * node_seconds(costs, *section, node) / all});
    }
  }
  for (const std::string_view op : order) {
    double share = 0;
    for (const ReferenceNode& node : of_op[op]) share += node.share;
    if (share > kShareThatMatters) found.insert(found.end(), of_op[op].begin(), of_op[op].end());
  }
}

}  // namespace

std::vector<ReferenceNode> reference_kernels(const Program& program, const Backend& backend) {
  std::vector<Part> step;
  std::vector<Part> evaluation;
  for (const Section& section : program.sections) {
    if (const std::int64_t runs = runs_per_step(program, section); runs > 0)
      step.push_back({&section, static_cast<double>(runs)});
    if (section.kind == SectionKind::eval) evaluation.push_back({&section, 1});
  }
  std::vector<ReferenceNode> found;
  find_in(step, backend, found);
  find_in(evaluation, backend, found);
  return found;
}

std::string reference_kernels_warning(std::span<const ReferenceNode> nodes) {
  if (nodes.empty()) return {};
  std::vector<std::string> names;
  for (const ReferenceNode& node : nodes.first(std::min(nodes.size(), kNodesNamed)))
    names.push_back(fmt::format("{} of '{}'", node.op, node.layer));
  const std::string more = nodes.size() > kNodesNamed ? fmt::format(" and {} more", nodes.size() - kNodesNamed) : "";
  return fmt::format("{} on plain reference kernels, which are hundreds of times slower: {}{}; see 'snug plan --kernels'",
                     nodes.size() == 1 ? "1 node runs" : fmt::format("{} nodes run", nodes.size()), fmt::join(names, ", "), more);
}

nlohmann::ordered_json reference_kernels_json(std::span<const ReferenceNode> nodes) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const ReferenceNode& node : nodes) {
    result.push_back({{"op", node.op},
                      {"layer", node.layer},
                      {"kernel", node.kernel},
                      {"section", name_of(node.section)},
                      {"share", node.share}});
  }
  return result;
}

}  // namespace snug::report
