#include "passes/kernel_choices.h"

#include "analysis/cost.h"

namespace snug {

const KernelDef* KernelChoices::choose(const Section& section, const Node& node, Accept& accept) {
  const auto [found, is_new] = known_.try_emplace(cost_key(section, node));
  Choice& choice = found->second;
  if (is_new) {
    const NodeTypes types = types_of(section, node);
    choice.kernel = backend_.choose(backend_.query(node, types), choice.accept);
  }
  accept = choice.accept;
  return choice.kernel;
}

}  // namespace snug
