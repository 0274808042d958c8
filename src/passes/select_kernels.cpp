#include "passes/select_kernels.h"

#include <string>

#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/error.h"
#include "ir/text.h"
#include "ir/unique_names.h"

namespace snug {

namespace {

constexpr std::string_view kWorkspace = ".workspace";

// Values are named after layers, and a layer may have the name of another one's workspace.
std::string workspace_name(const Value& owner, UniqueNames& names) {
  if (owner.name.empty()) return {};
  return names.make(
      fmt::format("{}{}", owner.is_state() ? fmt::format("{}.{}", owner.name, owner.version) : owner.name, kWorkspace));
}

// The smallest workspace with which a kernel can run the node; nothing: the backend has no kernel for it.
std::optional<Bytes> least_workspace(const Section& section, const Node& node, const Backend& backend) {
  const NodeTypes types = types_of(section, node);
  const KernelQuery query = backend.query(node, types);
  std::optional<Bytes> least;
  for (const KernelDef* kernel : backend.kernels) {
    if (kernel->op != node.op->name) continue;
    const KernelMatch match = kernel->answer(query);
    const auto* accept = std::get_if<Accept>(&match);
    if (accept != nullptr && (!least || accept->workspace < *least)) least = accept->workspace;
  }
  return least;
}

// If a node has no kernel because of the limit alone: throws, naming the node that needs most.
void refuse_small_limit(const Program& program, const Backend& backend) {
  std::optional<Bytes> least;
  std::string neediest;
  for (const Section& section : program.sections) {
    for (const Node& node : section.nodes) {
      const std::optional<Bytes> bytes = least_workspace(section, node, backend);
      if (!bytes) return;  // no limit would help
      if (least && *bytes <= *least) continue;
      least = bytes;
      neediest = node.layer.empty() ? std::string(node.op->name) : fmt::format("{} of '{}'", node.op->name, node.layer);
    }
  }
  if (least && *least > *backend.workspace_limit) throw WorkspaceTooSmall(*backend.workspace_limit, *least, neediest);
}

void select(Section& section, Node& node, const Backend& backend, UniqueNames& names, const Program& program) {
  const NodeTypes types = types_of(section, node);
  Accept accept;
  const KernelDef* kernel = backend.choose(backend.query(node, types), accept);
  if (kernel == nullptr) {
    if (backend.workspace_limit) refuse_small_limit(program, backend);
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

WorkspaceTooSmall::WorkspaceTooSmall(Bytes limit, Bytes least, const std::string& node)
    : UserError(
          fmt::format("a workspace limit of {} is too small: {} needs {} bytes ({}); raise the limit to that, or leave it out",
                      counted(limit.count(), "byte"), node, least.count(), format_bytes(least))),
      least_(least),
      node_(node) {}

Program select_kernels(Program program, const PassContext& context) {
  for (Section& section : program.sections) {
    UniqueNames names;  // those that a workspace's could collide with
    for (const Value& value : section.values) {
      if (value.name.find(kWorkspace) != std::string::npos) names.take(value.name);
    }
    for (Node& node : section.nodes) select(section, node, context.backend, names, program);
  }
  return program;
}

}  // namespace snug
