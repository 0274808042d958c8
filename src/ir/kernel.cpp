#include "ir/kernel.h"

#include <fmt/format.h>

namespace snug {

KernelQuery Backend::query(const Node& node, const NodeTypes& types) const {
  return {.op = *node.op,
          .attributes = node.attributes,
          .inputs = types.inputs,
          .outputs = types.outputs,
          .threads = threads,
          .device = device.get()};
}

const KernelDef* Backend::choose(const KernelQuery& query, Accept& accept, std::vector<std::string>* refusals) const {
  for (const KernelDef* kernel : kernels) {
    if (kernel->op != query.op.name) continue;
    KernelMatch match = kernel->match(query);
    if (const auto* accepted = std::get_if<Accept>(&match)) {
      if (workspace_limit && accepted->workspace > *workspace_limit) {
        match = Refuse{fmt::format("needs {} bytes of workspace, and the limit is {}", accepted->workspace.count(),
                                   workspace_limit->count())};
      }
    }
    if (const auto* accepted = std::get_if<Accept>(&match)) {
      accept = *accepted;
      return kernel;
    }
    if (refusals != nullptr) refusals->push_back(fmt::format("{}: {}", kernel->name, std::get<Refuse>(match).reason));
  }
  return nullptr;
}

const KernelDef* Backend::find(std::string_view kernel_name) const {
  for (const KernelDef* kernel : kernels) {
    if (kernel->name == kernel_name) return kernel;
  }
  return nullptr;
}

}  // namespace snug
