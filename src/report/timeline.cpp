#include "report/timeline.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/cost.h"
#include "ir/op.h"
#include "report/layers.h"

namespace snug::report {

namespace {

using Json = nlohmann::ordered_json;

Json columns(std::initializer_list<const char*> names) {
  Json result;
  for (const char* name : names) result[name] = Json::array();
  return result;
}

// Names that come again and again, as indices into a list.
class Names {
 public:
  std::size_t index_of(std::string_view name) {
    const auto [entry, is_new] = index_.try_emplace(std::string(name), all_.size());
    if (is_new) all_.emplace_back(name);
    return entry->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<std::string> all_;
};

// A column of names, each without what it has in common with the one before. Only ASCII is left out: a character of several bytes
// stays whole, and readers may count bytes or characters.
class NameColumn {
 public:
  explicit NameColumn(Names& words) : words_(words) {}

  void add(std::string_view name) {
    std::size_t common = 0;
    while (common < name.size() && common < last_.size() && name[common] == last_[common] &&
           static_cast<unsigned char>(name[common]) < 0x80U) {
      ++common;
    }
    rests_.push_back(words_.index_of(name.substr(common)));
    prefixes_.push_back(common);
    last_ = name;
  }
  void move_into(Json& columns) {
    columns["prefix"] = std::move(prefixes_);
    columns["rest"] = std::move(rests_);
  }

 private:
  Names& words_;
  std::string last_;
  Json rests_ = Json::array();
  Json prefixes_ = Json::array();
};

Json states_json(const Plan& plan, Names& words, Names& layers) {
  const std::vector<std::string> layers_of = layers_of_states(plan.program);
  NameColumn names(words);
  Json result = columns({"prefix", "rest", "layer", "class", "bytes", "offset"});
  for (std::size_t i = 0; i < plan.program.states.size(); ++i) {
    const State& state = plan.program.states[i];
    names.add(state.name);
    result["layer"].push_back(layers.index_of(layers_of[i]));
    result["class"].push_back(static_cast<int>(class_of(state.role)));
    result["bytes"].push_back(state.type.bytes().count());
    result["offset"].push_back(plan.state_offsets[i].count());
  }
  names.move_into(result);
  return result;
}

Json values_json(const Section& section, const SectionPlan& placed, Names& words) {
  NameColumn names(words);
  Json result = columns({"prefix", "rest", "class", "bytes", "offset", "begin", "end"});
  for (std::size_t b = 0; b < placed.liveness.buffers.size(); ++b) {
    const Buffer& buffer = placed.liveness.buffers[b];
    for (std::size_t i = 0; i < buffer.tenants.size(); ++i) {
      const Value& value = section.value(buffer.tenants[i].value);
      names.add(value.name);
      result["class"].push_back(static_cast<int>(class_of(value.role)));
      result["bytes"].push_back(buffer.size.count());
      result["offset"].push_back(placed.offsets[b].count());
      result["begin"].push_back(buffer.tenants[i].from);
      result["end"].push_back(i + 1 < buffer.tenants.size() ? buffer.tenants[i + 1].from : buffer.end);
    }
  }
  names.move_into(result);
  return result;
}

Json nodes_json(const Section& section, Names& ops, Names& layers) {
  Json result = columns({"op", "layer", "phase"});
  for (const Node& node : section.nodes) {
    result["op"].push_back(ops.index_of(node.op->name));
    result["layer"].push_back(layers.index_of(node.layer));
    result["phase"].push_back(static_cast<int>(node.phase));
  }
  return result;
}

std::int64_t runs_in_step(const Program& program, SectionKind kind) {
  if (kind == SectionKind::micro) return microbatches(program);
  return kind == SectionKind::update ? 1 : 0;
}

}  // namespace

Json timeline_json(const Plan& plan) {
  const SectionKind fullest = peak_moment(plan).section;
  Names ops;
  Names words;
  Names layers;
  Json sections = Json::array();
  for (std::size_t s = 0; s < plan.program.sections.size(); ++s) {
    const Section& section = plan.program.sections[s];
    // What runs once, or only for a reader, is of interest only where it is what needs most.
    const bool aside = section.kind == SectionKind::init || section.kind == SectionKind::derive;
    if (aside && section.kind != fullest) continue;
    sections.push_back({{"section", name_of(section.kind)},
                        {"runs", runs_in_step(plan.program, section.kind)},
                        {"placed_by", plan.sections[s].method},
                        {"nodes", nodes_json(section, ops, layers)},
                        {"values", values_json(section, plan.sections[s], words)}});
  }
  Json states = states_json(plan, words, layers);
  Json classes = Json::array();
  for (int c = 0; c < kMemoryClasses; ++c) classes.push_back(name_of(static_cast<MemoryClass>(c)));
  Json phases = Json::array();
  for (const Phase phase : {Phase::init, Phase::forward, Phase::recompute, Phase::backward, Phase::update}) {
    phases.push_back(name_of(phase));
  }
  NameColumn layer_names(words);
  for (const std::string& layer : layers.all()) layer_names.add(layer);
  Json layers_columns;
  layer_names.move_into(layers_columns);
  return {
      {"classes", std::move(classes)}, {"phases", std::move(phases)},         {"ops", ops.all()},
      {"words", words.all()},          {"layers", std::move(layers_columns)}, {"persistent_bytes", plan.persistent_bytes.count()},
      {"states", std::move(states)},   {"sections", std::move(sections)}};
}

}  // namespace snug::report
