#include "analysis/liveness.h"

#include <algorithm>

namespace snug {

Liveness liveness(const Section& section) {
  Liveness result;
  result.buffer_of.assign(section.values.size(), BufferId::none());
  const auto make = [&](ValueId id, int at) {
    const Value& value = section.value(id);
    if (value.is_state()) return;
    BufferId buffer = value.shares.valid() ? result.buffer_of[value.shares.index()] : BufferId::none();
    if (!buffer.valid()) {
      buffer = BufferId(result.buffers.size());
      result.buffers.push_back({.tenants = {}, .size = {}, .space = value.space, .begin = at, .end = at + 1});
    }
    Buffer& b = result.buffers[buffer.index()];
    b.tenants.push_back({id, at});
    b.size = std::max(b.size, value.type.bytes());
    b.end = at + 1;
    result.buffer_of[id.index()] = buffer;
  };
  for (std::size_t i = 0; i < section.nodes.size(); ++i) {
    const Node& node = section.nodes[i];
    const int at = static_cast<int>(i);
    for (const ValueId input : node.inputs) {
      const BufferId buffer = result.buffer_of[input.index()];
      if (buffer.valid()) result.buffers[buffer.index()].end = at + 1;
    }
    for (const ValueId output : node.outputs) make(output, at);
    if (node.workspace.valid()) make(node.workspace, at);
  }
  return result;
}

ValueId Buffer::tenant_at(int at) const {
  ValueId result = tenants.front().value;
  for (const Tenant& tenant : tenants) {
    if (tenant.from <= at) result = tenant.value;
  }
  return result;
}

std::string_view name_of(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::model:
      return "model";
    case MemoryClass::gradient:
      return "gradient";
    case MemoryClass::optimizer:
      return "optimizer";
    case MemoryClass::activation:
      return "activation";
    case MemoryClass::workspace:
      return "workspace";
    case MemoryClass::input:
      return "input";
  }
  return "?";
}

MemoryClass class_of(Role role) {
  switch (role) {
    case Role::parameter:
    case Role::statistic:
    case Role::scalar:
      return MemoryClass::model;
    case Role::gradient:
      return MemoryClass::gradient;
    case Role::optimizer:
      return MemoryClass::optimizer;
    case Role::activation:
    case Role::activation_gradient:
      return MemoryClass::activation;
    case Role::workspace:
      return MemoryClass::workspace;
    case Role::input:
      return MemoryClass::input;
  }
  return MemoryClass::workspace;
}

}  // namespace snug
