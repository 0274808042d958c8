#include "report/kernels.h"

#include <algorithm>
#include <map>
#include <utility>

namespace snug::report {

namespace {

std::vector<std::string> refusals_before(const Section& section, const Node& node, const Backend& backend) {
  const NodeTypes types = types_of(section, node);
  Accept accept;
  std::vector<std::string> refusals;
  backend.choose({.op = *node.op,
                  .attributes = node.attributes,
                  .inputs = types.inputs,
                  .outputs = types.outputs,
                  .threads = backend.threads},
                 accept, &refusals);
  return refusals;
}

void count(std::vector<KernelRefusal>& refusals, std::string reason) {
  const auto found = std::find_if(refusals.begin(), refusals.end(), [&](const KernelRefusal& r) { return r.reason == reason; });
  if (found != refusals.end()) {
    found->nodes += 1;
  } else {
    refusals.push_back({.reason = std::move(reason), .nodes = 1});
  }
}

}  // namespace

std::vector<KernelUse> kernels_of(const Program& program, const Backend& backend) {
  std::vector<KernelUse> uses;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> index;
  for (const Section& section : program.sections) {
    for (const Node& node : section.nodes) {
      const auto [entry, is_new] = index.try_emplace({node.op->name, node.kernel}, uses.size());
      if (is_new) uses.push_back({.op = node.op->name, .kernel = node.kernel});
      KernelUse& use = uses[entry->second];
      use.nodes += 1;
      if (node.workspace.valid()) use.workspace = std::max(use.workspace, section.value(node.workspace).type.bytes());
      if (use.sections.empty() || use.sections.back() != section.kind) use.sections.push_back(section.kind);
      for (std::string& reason : refusals_before(section, node, backend)) count(use.refusals, std::move(reason));
    }
  }
  return uses;
}

}  // namespace snug::report
