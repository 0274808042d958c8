#include "report/kernels.h"

#include <algorithm>
#include <map>
#include <tuple>
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

bool is_on_reference(const Backend& backend, const Section& section, const Node& node) {
  const KernelDef* kernel = backend.find(node.kernel);
  if (kernel == nullptr) return false;
  const NodeTypes types = types_of(section, node);
  const KernelMatch match = kernel->answer(backend.query(node, types));
  const auto* accept = std::get_if<Accept>(&match);
  return accept != nullptr && accept->is_reference;
}

std::vector<KernelUse> kernels_of(const Program& program, const Backend& backend) {
  std::vector<KernelUse> uses;
  std::map<std::tuple<std::string_view, std::string_view, bool>, std::size_t> index;
  for (const Section& section : program.sections) {
    for (const Node& node : section.nodes) {
      const bool is_reference = is_on_reference(backend, section, node);
      const auto [entry, is_new] = index.try_emplace({node.op->name, node.kernel, is_reference}, uses.size());
      if (is_new) uses.push_back({.op = node.op->name, .kernel = node.kernel, .is_reference = is_reference});
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
