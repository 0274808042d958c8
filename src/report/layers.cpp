#include "report/layers.h"

#include <unordered_map>
#include <utility>

#include "analysis/cost.h"
#include "base/error.h"
#include "ir/op.h"

namespace snug::report {

namespace {

constexpr std::string_view kScalars = "scalars";

}  // namespace

std::vector<std::string> layers_of_states(const Program& program) {
  std::vector<std::string> layers(program.states.size());
  std::vector<bool> is_shared(program.states.size());
  const auto claim = [&](const Section& section, ValueId id, const std::string& layer) {
    const Value& value = section.value(id);
    if (!value.is_state() || value.role == Role::scalar) return;
    std::string& claimed = layers[value.state.index()];
    if (claimed.empty()) claimed = layer;
    if (claimed != layer) is_shared[value.state.index()] = true;
  };
  if (const Section* micro = program.find_section(SectionKind::micro)) {
    for (const Node& node : micro->nodes) {
      if (node.phase == Phase::update) continue;
      for (const ValueId id : node.inputs) claim(*micro, id, node.layer);
      for (const ValueId id : node.outputs) claim(*micro, id, node.layer);
    }
  }
  // What several layers use, such as the store of sparse weights, belongs to none of them; what is kept beside a parameter
  // follows it.
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!is_shared[i]) continue;
    const State& state = program.states[i];
    const bool follows = state.role == Role::gradient || state.role == Role::optimizer;
    layers[i] = follows ? "" : state.name.substr(0, state.name.rfind('.'));
  }
  // Usually only the update reads momentum, beside the parameter that it updates; a fused update is in `micro`.
  for (const Section& section : program.sections) {
    for (const Node& node : section.nodes) {
      if (node.phase != Phase::update) continue;
      std::string layer = node.layer;
      for (const ValueId id : node.inputs) {
        const Value& value = section.value(id);
        if (value.is_state() && value.role == Role::parameter) layer = layers[value.state.index()];
      }
      for (const ValueId id : node.inputs) claim(section, id, layer);
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const State& state = program.states[i];
    if (layers[i].empty()) layers[i] = state.role == Role::scalar ? std::string(kScalars) : state.name;
  }
  return layers;
}

namespace {

class Layers {
 public:
  explicit Layers(const Program& program) : of_states_(layers_of_states(program)) {}

  LayerUse& at(const std::string& name) {
    const auto [entry, is_new] = index_.try_emplace(name, all_.size());
    if (is_new) all_.push_back({.name = name});
    return all_[entry->second];
  }
  LayerUse& of_state(std::size_t state) { return at(of_states_[state]); }
  LayerUse& of_node(const Section& section, const Node& node) {
    // The update's nodes are named after parameters.
    if (node.phase == Phase::update) {
      for (const ValueId id : node.outputs) {
        const Value& value = section.value(id);
        if (value.is_state() && value.role == Role::parameter) return of_state(value.state.index());
      }
    }
    return at(node.layer);
  }

  std::vector<LayerUse> take() { return std::move(all_); }

 private:
  std::vector<std::string> of_states_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<LayerUse> all_;
};

void add_to(ByClass& sum, Role role, Bytes size) { sum[static_cast<std::size_t>(class_of(role))] += size; }

}  // namespace

std::vector<LayerUse> layers_at_peak(const Plan& plan, const PeakMoment& peak) {
  const Program& program = plan.program;
  Layers layers(program);
  for (const Section& section : program.sections) {
    const std::int64_t runs = runs_per_step(program, section);
    if (runs == 0) continue;
    for (const Node& node : section.nodes) {
      layers.of_node(section, node).flops.add(node.phase, times(count_flops(section, node), runs));
    }
  }
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const State& state = program.states[i];
    LayerUse& layer = layers.of_state(i);
    if (state.role == Role::parameter) layer.parameters += state.type.elements();
    if (state.space == MemorySpace::device) add_to(layer.at_peak, state.role, state.type.bytes());
  }
  for (std::size_t s = 0; s < program.sections.size(); ++s) {
    const Section& section = program.sections[s];
    if (section.id() != peak.section) continue;
    const std::vector<ValueLife> lives = value_lives(section);
    for (const Buffer& buffer : plan.sections[s].liveness.buffers) {
      if (buffer.space != MemorySpace::device || buffer.begin > peak.node || buffer.end <= peak.node) continue;
      const ValueId tenant = buffer.tenant_at(peak.node);
      const NodeId producer = lives[tenant.index()].producer;
      SNUG_CHECK(producer.valid(), "nothing makes %{}", section.value(tenant).name);
      add_to(layers.of_node(section, section.nodes[producer.index()]).at_peak, section.value(tenant).role, buffer.size);
    }
  }
  return layers.take();
}

ParameterCount count_parameters(const Program& program) {
  ParameterCount count;
  for (const State& state : program.states) {
    if (state.role != Role::parameter) continue;
    count.all += state.type.elements();
    if (state.trainable) count.trainable += state.type.elements();
  }
  return count;
}

std::vector<LayerUse> group_layers(std::span<const LayerUse> layers, int components) {
  std::vector<LayerUse> groups;
  std::unordered_map<std::string_view, std::size_t> index;
  for (const LayerUse& layer : layers) {
    const std::string_view name = first_components(layer.name, components);
    const auto [entry, is_new] = index.try_emplace(name, groups.size());
    if (is_new) groups.push_back({.name = std::string(name)});
    LayerUse& group = groups[entry->second];
    group.parameters += layer.parameters;
    for (std::size_t c = 0; c < group.at_peak.size(); ++c) group.at_peak[c] += layer.at_peak[c];
    group.flops.add(Phase::forward, layer.flops.forward);
    group.flops.add(Phase::recompute, layer.flops.recompute);
    group.flops.add(Phase::backward, layer.flops.backward);
    group.flops.add(Phase::update, layer.flops.update);
  }
  return groups;
}

}  // namespace snug::report
