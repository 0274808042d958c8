#include "passes/fuse_relu.h"

#include "ops/ops.h"

namespace snug {

Graph fuse_relu(Graph graph) {
  Section& forward = graph.forward;
  std::vector<int> readers(forward.values.size(), 0);
  std::vector<std::size_t> producer(forward.values.size(), forward.nodes.size());
  for (std::size_t i = 0; i < forward.nodes.size(); ++i) {
    for (const ValueId input : forward.nodes[i].inputs) ++readers[input.index()];
    for (const ValueId output : forward.nodes[i].outputs) producer[output.index()] = i;
  }
  // A value that evaluation reads or replaces keeps its own node.
  for (const auto& [trained, evaluated] : graph.evaluation_substitutes) {
    ++readers[trained.index()];
    ++readers[evaluated.index()];
  }

  std::vector<bool> fused(forward.nodes.size(), false);
  for (std::size_t i = 0; i < forward.nodes.size(); ++i) {
    if (forward.nodes[i].op != &ops::relu) continue;
    const ValueId between = forward.nodes[i].inputs[0];
    const std::size_t maker = producer[between.index()];
    if (maker == forward.nodes.size() || readers[between.index()] != 1) continue;
    Node& norm = forward.nodes[maker];
    // With fixed statistics backward does not read x, and finding the sign again would make it.
    if (norm.op != &ops::batch_norm_apply || forward.value(norm.inputs[1]).type.shape.rank() != 2) continue;
    norm.attributes.set("relu", std::int64_t{1});
    norm.outputs[0] = forward.nodes[i].outputs[0];
    fused[i] = true;
  }

  std::vector<Node> kept;
  for (std::size_t i = 0; i < forward.nodes.size(); ++i) {
    if (fused[i]) continue;
    if (graph.loss == NodeId(i)) graph.loss = NodeId(kept.size());
    kept.push_back(std::move(forward.nodes[i]));
  }
  forward.nodes = std::move(kept);
  return graph;
}

}  // namespace snug
