#include "passes/eliminate_dead_nodes.h"

#include <algorithm>
#include <utility>

namespace snug {

namespace {

void eliminate(Section& section) {
  std::vector<bool> read(section.values.size(), false);
  std::vector<bool> needed(section.nodes.size(), false);
  for (std::size_t i = section.nodes.size(); i-- > 0;) {
    const Node& node = section.nodes[i];
    needed[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId id) { return read[id.index()] || section.value(id).is_state(); });
    if (!needed[i]) continue;
    for (const ValueId input : node.inputs) read[input.index()] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    if (kept != i) section.nodes[kept] = std::move(section.nodes[i]);
    ++kept;
  }
  section.nodes.erase(section.nodes.begin() + static_cast<std::ptrdiff_t>(kept), section.nodes.end());
}

}  // namespace

Program eliminate_dead_nodes(Program program, const PassContext& /*context*/) {
  for (Section& section : program.sections) eliminate(section);
  return program;
}

}  // namespace snug
