#include "passes/kernel_choices.h"

#include "analysis/cost.h"

namespace snug {

const KernelChoices::Choice& KernelChoices::of(const Section& section, const Node& node) {
  const auto [found, is_new] = known_.try_emplace(cost_key(section, node));
  Choice& choice = found->second;
  if (is_new) {
    const NodeTypes types = types_of(section, node);
    choice.kernel = backend_.choose(backend_.query(node, types), choice.accept, &choice.refusals);
  }
  return choice;
}

}  // namespace snug
