// Nodes that silently make a plan slow: those that run on plain scalar loops and do much of the work.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "ir/kernel.h"
#include "ir/program.h"

namespace snug::report {

struct ReferenceNode {
  std::string_view op;
  std::string layer;
  std::string kernel;
  SectionKind section = SectionKind::micro;
  double share = 0;  // of the work of a step, or of an evaluation, by the fixed cost table; 0 to 1
};

// An op's nodes on plain loops are reported if together they do more than this share of the work.
inline constexpr double kShareThatMatters = 0.01;

// Of a step and of an evaluation, in the order of the program. Only the backend that runs a node can say whether its kernel is
// plain loops: on another processor the same kernel may be fast. So the current backend is asked about every plan, also one from
// a file or a snapshot.
std::vector<ReferenceNode> reference_kernels(const Program& program, const Backend& backend);

// "3 nodes run on plain reference kernels, hundreds of times slower than others: conv2d of 'conv1', ... (see 'snug plan
// --kernels')"; empty when there are none. One line, without "snug: " before it.
std::string reference_kernels_warning(std::span<const ReferenceNode> nodes);

// An array, empty when there are none.
nlohmann::ordered_json reference_kernels_json(std::span<const ReferenceNode> nodes);

}  // namespace snug::report
