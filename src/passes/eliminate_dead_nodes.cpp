#include "passes/eliminate_dead_nodes.h"

#include <algorithm>

namespace snug {

namespace {

void eliminate(Section& section) {
  std::vector<bool> read(section.values.size(), false);
  std::vector<Node> kept;
  for (auto node = section.nodes.rbegin(); node != section.nodes.rend(); ++node) {
    const bool needed = std::any_of(node->outputs.begin(), node->outputs.end(),
                                    [&](ValueId id) { return read[id.index()] || section.value(id).is_state(); });
    if (!needed) continue;
    for (const ValueId input : node->inputs) read[input.index()] = true;
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  section.nodes = std::move(kept);
}

}  // namespace

Program eliminate_dead_nodes(Program program, const PassContext& /*context*/) {
  for (Section& section : program.sections) eliminate(section);
  return program;
}

}  // namespace snug
