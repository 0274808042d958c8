#include "passes/model/fuse.h"

#include <algorithm>

#include "ir/op.h"

namespace snug {

namespace {

// How `by` can do what `op` does on its output; nullptr when it cannot.
const Absorption* find_absorption(const Section& forward, const Node& by, const OpDef& op) {
  const auto found = std::find_if(by.op->absorbs.begin(), by.op->absorbs.end(),
                                  [&](const Absorption& absorption) { return absorption.op == &op; });
  if (found == by.op->absorbs.end() || by.attributes.integer_or(found->attribute, 0) != 0) return nullptr;
  return found->allows == nullptr || found->allows(types_of(forward, by)) ? &*found : nullptr;
}

void fuse_in(Section& forward) {
  std::vector<int> readers(forward.values.size(), 0);
  std::vector<std::size_t> producer(forward.values.size(), forward.nodes.size());
  for (std::size_t i = 0; i < forward.nodes.size(); ++i) {
    for (const ValueId input : forward.nodes[i].inputs) ++readers[input.index()];
    for (const ValueId output : forward.nodes[i].outputs) producer[output.index()] = i;
  }
  // A value that evaluation reads or replaces keeps its own node.
  for (const auto& [trained, evaluated] : forward.in_evaluation) {
    ++readers[trained.index()];
    ++readers[evaluated.index()];
  }

  std::vector<bool> fused(forward.nodes.size(), false);
  for (std::size_t i = 0; i < forward.nodes.size(); ++i) {
    if (forward.nodes[i].inputs.empty()) continue;
    const ValueId between = forward.nodes[i].inputs[0];
    const std::size_t maker = producer[between.index()];
    if (maker == forward.nodes.size() || readers[between.index()] != 1) continue;
    Node& absorbing = forward.nodes[maker];
    const Absorption* absorption = find_absorption(forward, absorbing, *forward.nodes[i].op);
    if (absorption == nullptr || absorbing.outputs[0] != between) continue;
    absorbing.attributes.set(absorption->attribute, std::int64_t{1});
    absorbing.outputs[0] = forward.nodes[i].outputs[0];
    fused[i] = true;
  }

  std::vector<Node> kept;
  for (std::size_t i = 0; i < forward.nodes.size(); ++i) {
    if (fused[i]) continue;
    kept.push_back(std::move(forward.nodes[i]));
  }
  forward.nodes = std::move(kept);
}

}  // namespace

Program fuse(Program model) {
  for (Section& section : model.sections) {
    if (section.kind == SectionKind::forward) fuse_in(section);
  }
  return model;
}

}  // namespace snug
