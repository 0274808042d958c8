#include "passes/select_kernels.h"

#include <string>
#include <unordered_set>

#include <fmt/ranges.h>

#include "base/error.h"
#include "ir/text.h"

namespace snug {

namespace {

constexpr std::string_view kWorkspace = ".workspace";

// Those that a workspace's might be taken for.
using Names = std::unordered_set<std::string>;

// Values are called like layers, and nothing keeps a layer from being called like another one's workspace.
std::string workspace_name(const Value& owner, Names& taken) {
  if (owner.name.empty()) return {};
  const std::string wanted =
      fmt::format("{}{}", owner.is_state() ? fmt::format("{}.{}", owner.name, owner.version) : owner.name, kWorkspace);
  std::string name = wanted;
  for (int number = 2; !taken.insert(name).second; ++number) name = fmt::format("{}.{}", wanted, number);
  return name;
}

void select(Section& section, Node& node, const Backend& backend, Names& names) {
  const NodeTypes types = types_of(section, node);
  Accept accept;
  const KernelDef* kernel = backend.choose(backend.query(node, types), accept);
  if (kernel == nullptr) {
    std::vector<std::string> refusals;
    backend.choose(backend.query(node, types), accept, &refusals);
    throw_user_error("the {} backend has no kernel for '{}' ({})", backend.name, print(section, node),
                     refusals.empty() ? "none for this op" : fmt::format("{}", fmt::join(refusals, "; ")));
  }
  node.kernel = kernel->name;
  if (accept.workspace == Bytes(0)) return;
  section.values.push_back({.name = workspace_name(section.value(node.outputs.front()), names),
                            .type = {.dtype = DType::u8, .shape = {accept.workspace.count()}},
                            .role = Role::workspace});
  node.workspace = ValueId(section.values.size() - 1);
}

}  // namespace

Program select_kernels(Program program, const PassContext& context) {
  for (Section& section : program.sections) {
    Names names;
    for (const Value& value : section.values) {
      if (value.name.find(kWorkspace) != std::string::npos) names.insert(value.name);
    }
    for (Node& node : section.nodes) select(section, node, context.backend, names);
  }
  return program;
}

}  // namespace snug
