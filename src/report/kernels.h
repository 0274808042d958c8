// Which kernel runs which op, and why the preferred ones do not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel.h"
#include "ir/program.h"

namespace snug::report {

struct KernelRefusal {
  std::string reason;  // "kernel: why"
  std::int64_t nodes = 0;
};

struct KernelUse {
  std::string_view op;
  std::string kernel;
  bool is_reference = false;  // plain scalar loops; for a library's kernel that may depend on the node
  std::int64_t nodes = 0;
  Bytes workspace = {};                      // of the node that needs most
  std::vector<SectionKind> sections = {};    // where those nodes are
  std::vector<KernelRefusal> refusals = {};  // of kernels that the backend prefers but that cannot run these nodes
};

// Whether the node's kernel is plain scalar loops on this backend; false where the backend does not know it.
bool is_on_reference(const Backend& backend, const Section& section, const Node& node);

// One entry for each pair of op and kernel, in the order of the program.
std::vector<KernelUse> kernels_of(const Program& program, const Backend& backend);

}  // namespace snug::report
