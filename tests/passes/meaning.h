// What a program computes: for every version of a state that it writes, the expression over states that it is, as a number. Two
// programs with the same meaning give the same bits, in whatever order, and however often, they run their nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/op.h"
#include "ir/program.h"

namespace snug::testing {

// FNV-1a.
inline std::uint64_t number_of(const std::string& expression) {
  std::uint64_t result = 14695981039346656037U;
  for (const char c : expression) result = (result ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return result;
}

inline std::map<std::string, std::uint64_t> meaning_of(const Program& program) {
  std::map<std::string, std::uint64_t> written;
  for (const Section& section : program.sections) {
    std::vector<std::uint64_t> number(section.values.size(), 0);
    for (std::size_t v = 0; v < section.values.size(); ++v) {
      const Value& value = section.values[v];
      if (value.is_state()) number[v] = number_of(fmt::format("{}@{}", value.name, value.version));
    }
    for (const Node& node : section.nodes) {
      std::string expression(node.op->name);
      for (const auto& [name, value] : node.attributes.entries()) {
        expression += " " + name;
        std::visit([&](const auto& constant) { expression += fmt::format("={}", constant); }, value);
      }
      for (const ValueId input : node.inputs) expression += fmt::format(" {}", number[input.index()]);
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        const Value& output = section.value(node.outputs[k]);
        number[node.outputs[k].index()] = number_of(fmt::format("{} -> {} {}", expression, k, to_string(output.type)));
        if (!output.is_state()) continue;
        written[fmt::format("{} {}@{}", name_of(section.kind), output.name, output.version)] = number[node.outputs[k].index()];
      }
    }
  }
  return written;
}

}  // namespace snug::testing
