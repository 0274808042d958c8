#include "ir/kernel.h"

#include <fmt/format.h>

namespace snug {

KernelQuery Backend::query(const Node& node, const NodeTypes& types) const {
  return {.op = *node.op,
          .attributes = node.attributes,
          .inputs = types.inputs,
          .outputs = types.outputs,
          .threads = threads,
          .device = device.get(),
          .touches_host = types.touches_host};
}

KernelMatch KernelDef::answer(const KernelQuery& query) const {
  if (query.touches_host && !takes_host)
    return Refuse{"an operand lies in host memory, and this kernel works on the device alone"};
  return match(query);
}

std::string Backend::made_for() const { return fmt::format("{} {}, {}", threads, threads == 1 ? "thread" : "threads", machine); }

const KernelDef* Backend::choose(const KernelQuery& query, Accept& accept, std::vector<std::string>* refusals) const {
  const auto choose = [&](KernelAnswers::Entry& known) { return choose_from(known, query, accept, refusals); };
  if (answers) return answers->look_up(query, choose);
  KernelAnswers::Entry nothing;
  return choose(nothing);
}

const KernelDef* Backend::choose_from(KernelAnswers::Entry& known, const KernelQuery& query, Accept& accept,
                                      std::vector<std::string>* refusals) const {
  const auto ask_one_more = [&] {
    while (known.looked_at < kernels.size()) {
      const KernelDef* kernel = kernels[known.looked_at++];
      if (kernel->op != query.op.name) continue;
      known.answers.push_back({.kernel = kernel, .match = kernel->answer(query)});
      return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < known.answers.size() || ask_one_more(); ++i) {
    const KernelAnswers::Answer& answer = known.answers[i];
    const auto refuse = [&](const std::string& reason) {
      if (refusals != nullptr) refusals->push_back(fmt::format("{}: {}", answer.kernel->name, reason));
    };
    if (const auto* refusal = std::get_if<Refuse>(&answer.match)) {
      refuse(refusal->reason);
      continue;
    }
    const Accept& accepted = std::get<Accept>(answer.match);
    if (workspace_limit && accepted.workspace > *workspace_limit) {
      refuse(
          fmt::format("needs {} bytes of workspace, and the limit is {}", accepted.workspace.count(), workspace_limit->count()));
      continue;
    }
    accept = accepted;
    return answer.kernel;
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
