#include "passes/select_kernels.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "ir/text.h"

namespace snug {

namespace {

void select(Section& section, Node& node, const Backend& backend) {
  const NodeTypes types = types_of(section, node);
  Accept accept;
  std::vector<std::string> refusals;
  const KernelDef* kernel = backend.choose(backend.query(node, types), accept, &refusals);
  if (kernel == nullptr) {
    throw_user_error("the {} backend has no kernel for '{}' ({})", backend.name, print(section, node),
                     refusals.empty() ? "none for this op" : fmt::format("{}", fmt::join(refusals, "; ")));
  }
  node.kernel = kernel->name;
  if (accept.workspace == Bytes(0)) return;
  const Value& first = section.value(node.outputs.front());
  const std::string owner = first.is_state() ? fmt::format("{}.{}", first.name, first.version) : first.name;
  section.values.push_back(
      {.name = owner + ".workspace", .type = {.dtype = DType::u8, .shape = {accept.workspace.count()}}, .role = Role::workspace});
  node.workspace = ValueId(section.values.size() - 1);
}

}  // namespace

Program select_kernels(Program program, const PassContext& context) {
  for (Section& section : program.sections) {
    for (Node& node : section.nodes) select(section, node, context.backend);
  }
  return program;
}

}  // namespace snug
