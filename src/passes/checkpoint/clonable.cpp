#include "passes/checkpoint/clonable.h"

#include <algorithm>
#include <unordered_map>

#include "ir/op.h"

namespace snug {

std::vector<bool> find_clonable_nodes(const Section& section, std::size_t end) {
  std::unordered_map<StateId, int> last_version;
  for (const Node& node : section.nodes) {
    for (const ValueId id : node.outputs) {
      if (section.value(id).is_state()) last_version[section.value(id).state] = section.value(id).version;
    }
  }
  const auto is_state = [&](ValueId id) { return section.value(id).is_state(); };
  const auto is_overwritten = [&](ValueId id) {
    const auto found = last_version.find(section.value(id).state);
    return is_state(id) && found != last_version.end() && found->second > section.value(id).version;
  };
  std::vector<bool> clonable(end, false);
  for (std::size_t i = 0; i < end; ++i) {
    const Node& node = section.nodes[i];
    clonable[i] = node.op->may_recompute && std::none_of(node.outputs.begin(), node.outputs.end(), is_state) &&
                  std::none_of(node.inputs.begin(), node.inputs.end(), is_overwritten);
  }
  return clonable;
}

}  // namespace snug
