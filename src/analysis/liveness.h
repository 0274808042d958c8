// Liveness: the buffers of a section, each with its half-open lifetime in nodes.
#pragma once

#include <vector>

#include "ir/program.h"

namespace snug {

using BufferId = StrongId<struct BufferTag>;

struct Tenant {
  ValueId value;
  int from;  // the node that makes it

  friend bool operator==(const Tenant&, const Tenant&) = default;
};

// Values that lie in the same bytes, one after the other (or, for views, together).
struct Buffer {
  std::vector<Tenant> tenants;  // in the order they are made
  Bytes size;                   // of the largest
  MemorySpace space = MemorySpace::device;
  int begin = 0;  // first node that needs it
  int end = 0;    // one past the last

  // The value whose contents it holds while node `at` runs.
  ValueId tenant_at(int at) const;

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct Liveness {
  std::vector<Buffer> buffers;
  std::vector<BufferId> buffer_of;  // by value; none for states and values that nothing makes

  friend bool operator==(const Liveness&, const Liveness&) = default;
};

Liveness liveness(const Section& section);

// The classes of the memory report.
enum class MemoryClass : std::uint8_t { model, gradient, optimizer, activation, workspace, input };
inline constexpr int kMemoryClasses = 6;
std::string_view name_of(MemoryClass memory_class);
MemoryClass class_of(Role role);

}  // namespace snug
