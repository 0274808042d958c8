#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/text.h"

namespace snug {

namespace {

using Buffer = fmt::memory_buffer;

template <typename... Args>
void put(Buffer& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// The shortest digits that read back as the same number, always recognizable as a real number.
std::string real(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

struct AttributePrinter {
  Buffer& out;
  void operator()(std::int64_t value) const { put(out, "{}", value); }
  void operator()(double value) const { put(out, "{}", real(value)); }
  void operator()(const std::vector<std::int64_t>& values) const { put(out, "[{}]", fmt::join(values, ",")); }
  void operator()(const std::vector<double>& values) const {
    put(out, "[");
    for (std::size_t i = 0; i < values.size(); ++i) put(out, "{}{}", i == 0 ? "" : ",", real(values[i]));
    put(out, "]");
  }
};

std::string reference(const Value& value) {
  return value.is_state() ? fmt::format("{}@{}", value.name, value.version) : fmt::format("%{}", value.name);
}

// With its type where the section reads only part of the state: inputs, in sections of another shape.
std::string operand(const Section& section, const Value& value) {
  const bool is_part = value.is_state() && value.role == Role::input && section.shape != RunShape{};
  return is_part ? fmt::format("{} as {}", reference(value), to_string(value.type)) : reference(value);
}

void put_references(Buffer& out, const Section& section, const std::vector<ValueId>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) put(out, "{}{}", i == 0 ? "" : ", ", operand(section, section.value(ids[i])));
}

void put_output(Buffer& out, const Section& section, const Value& value) {
  if (value.is_state()) {
    put(out, "state");
    return;
  }
  put(out, "{} {}", to_string(value.type), name_of(value.role));
  if (value.space == MemorySpace::host) put(out, " host");
  if (value.shares.valid()) put(out, " in {}", reference(section.value(value.shares)));
}

void put_node(Buffer& out, const Section& section, const Node& node) {
  put_references(out, section, node.outputs);
  put(out, " = {}(", node.op->name);
  put_references(out, section, node.inputs);
  put(out, ")");
  if (!node.attributes.entries().empty()) {
    put(out, " {{");
    for (std::size_t i = 0; i < node.attributes.entries().size(); ++i) {
      const auto& [name, value] = node.attributes.entries()[i];
      put(out, "{}{}=", i == 0 ? "" : ", ", name);
      std::visit(AttributePrinter{out}, value);
    }
    put(out, "}}");
  }
  put(out, " : ");
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (i != 0) put(out, ", ");
    put_output(out, section, section.value(node.outputs[i]));
  }
  if (!node.kernel.empty()) put(out, " using {}", node.kernel);
  if (node.workspace.valid()) {
    const Value& workspace = section.value(node.workspace);
    put(out, " workspace {} {}", reference(workspace), to_string(workspace.type));
  }
  put(out, " ; {}", name_of(node.phase));
  if (!node.layer.empty()) put(out, " {}", node.layer);
}

void put_section(Buffer& out, const Section& section) {
  put(out, "section {}\n", to_string(section.id()));
  for (const Node& node : section.nodes) {
    put(out, "  ");
    put_node(out, section, node);
    put(out, "\n");
  }
  for (const Substitute& each : section.in_evaluation)
    put(out, "  in_evaluation {} for {}\n", reference(section.value(each.evaluated)), reference(section.value(each.trained)));
}

}  // namespace

std::string print(const Section& section, const Node& node) {
  Buffer out;
  put_node(out, section, node);
  return fmt::to_string(out);
}

std::string print(const Section& section) {
  Buffer out;
  put_section(out, section);
  return fmt::to_string(out);
}

std::string print(const Program& program) {
  Buffer out;
  put(out, "program {} batch {} microbatch {}\n", program.name, program.batch, program.microbatch);
  for (const State& state : program.states) {
    put(out, "state {} : {} {}", state.name, to_string(state.type), name_of(state.role));
    if (state.space == MemorySpace::host) put(out, " host");
    if (state.trainable) put(out, " trainable");
    if (!state.purpose.empty()) put(out, " {}", state.purpose);
    if (state.owner.valid()) put(out, " of {}", program.state(state.owner).name);
    put(out, "\n");
  }
  for (const Section& section : program.sections) put_section(out, section);
  return fmt::to_string(out);
}

}  // namespace snug
