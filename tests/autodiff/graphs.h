// Small models, and questions about the programs they become.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "autodiff/differentiate.h"
#include "frontend/graph_builder.h"
#include "ir/op.h"
#include "ir/text.h"

namespace snug::testing {

using frontend::GraphBuilder;

// A model of the layers that `layers` puts on features [3], and a classifier "head".
template <typename Layers>
Program model_on_vectors(Layers layers) {
  GraphBuilder b("model", 2);
  b.softmax_cross_entropy(b.linear("head", layers(b, b.features({3})), 5, {.bias = false}));
  return std::move(b).finish();
}

template <typename Layers>
Program model_on_images(Layers layers) {
  GraphBuilder b("model", 2);
  b.softmax_cross_entropy(
      b.linear("head", b.global_avg_pool("pool", layers(b, b.features({3, 8, 8}, Layout::channels_last()))), 5, {.bias = false}));
  return std::move(b).finish();
}

// The nodes of a section, one a line, whose phase is as asked.
inline std::string nodes_of(const Program& program, SectionKind kind, Phase phase) {
  const Section& section = *program.find_section(kind);
  std::string text;
  for (const Node& node : section.nodes) {
    if (node.phase == phase) text += print(section, node) + "\n";
  }
  return text;
}

inline std::string backward_of(const Program& program) { return nodes_of(program, SectionKind::micro, Phase::backward); }

// "relu_grad linear_grad_weight add ": the ops of a phase in their order.
inline std::string ops_of(const Program& program, SectionKind kind, Phase phase) {
  std::string text;
  for (const Node& node : program.find_section(kind)->nodes) {
    if (node.phase == phase) text += std::string(node.op->name) + " ";
  }
  return text;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Every forward node's recipe, `choice` for those of one op and the first for the others.
inline Program recipes_with(Program model, std::string_view op, std::int64_t choice) {
  for (Node& node : model.section(SectionKind::forward).nodes) {
    if (node.op->name == op) node.attributes.set(kRecipe, choice);
  }
  return model;
}

}  // namespace snug::testing
