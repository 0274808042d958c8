#include "report/timeline.h"

#include <algorithm>
#include <cstdint>
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

// Repeated values as indices into a list.
template <typename T>
class Listed {
 public:
  std::size_t index_of(const T& entry) {
    const auto [found, is_new] = index_.try_emplace(entry, all_.size());
    if (is_new) all_.push_back(entry);
    return found->second;
  }
  const std::vector<T>& all() const { return all_; }

 private:
  std::unordered_map<T, std::size_t> index_;
  std::vector<T> all_;
};
using Names = Listed<std::string>;

// The lists that all columns share.
struct Lists {
  Names ops, words, layers;
  Listed<std::int64_t> sizes, places;
};

// A column of names, each without the prefix that it shares with the one before. Only ASCII is left out: no character is split,
// and readers may count bytes or characters.
class NameColumn {
 public:
  explicit NameColumn(Names& words) : words_(words) {}

  void add(std::string_view name) {
    std::size_t common = 0;
    while (common < name.size() && common < last_.size() && name[common] == last_[common] &&
           static_cast<unsigned char>(name[common]) < 0x80U) {
      ++common;
    }
    rests_.push_back(words_.index_of(std::string(name.substr(common))));
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

Json states_json(const Plan& plan, Lists& lists) {
  const std::vector<std::string> layers_of = layers_of_states(plan.program);
  NameColumn names(lists.words);
  Json result = columns({"prefix", "rest", "layer", "class", "size", "place"});
  for (std::size_t i = 0; i < plan.program.states.size(); ++i) {
    const State& state = plan.program.states[i];
    if (state.space != MemorySpace::device) continue;  // the page draws the device's arena
    names.add(state.name);
    result["layer"].push_back(lists.layers.index_of(layers_of[i]));
    result["class"].push_back(static_cast<int>(class_of(state.role)));
    result["size"].push_back(lists.sizes.index_of(state.type.bytes().count()));
    result["place"].push_back(lists.places.index_of(plan.state_offsets[i].count()));
  }
  names.move_into(result);
  return result;
}

// A value in a buffer, which others may use before and after it.
struct Stay {
  std::size_t buffer = 0;
  ValueId value;
  int begin = 0, end = 0;
};

std::vector<Stay> stays_of(const SectionPlan& placed) {
  std::vector<Stay> stays;
  for (const std::size_t b : buffers_in(placed.liveness, MemorySpace::device)) {
    const Buffer& buffer = placed.liveness.buffers[b];
    for (std::size_t i = 0; i < buffer.tenants.size(); ++i) {
      const int end = i + 1 < buffer.tenants.size() ? buffer.tenants[i + 1].from : buffer.end;
      stays.push_back({.buffer = b, .value = buffer.tenants[i].value, .begin = buffer.tenants[i].from, .end = end});
    }
  }
  std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) { return a.begin < b.begin; });
  return stays;
}

Json values_json(const Section& section, const SectionPlan& placed, Lists& lists) {
  NameColumn names(lists.words);
  Json result = columns({"prefix", "rest", "class", "size", "place", "later", "lives"});
  int last = 0;
  for (const Stay& stay : stays_of(placed)) {
    const Value& value = section.value(stay.value);
    names.add(value.name);
    result["class"].push_back(static_cast<int>(class_of(value.role)));
    result["size"].push_back(lists.sizes.index_of(placed.liveness.buffers[stay.buffer].size.count()));
    result["place"].push_back(lists.places.index_of(placed.offsets[stay.buffer].count()));
    result["later"].push_back(stay.begin - last);
    result["lives"].push_back(stay.end - stay.begin);
    last = stay.begin;
  }
  names.move_into(result);
  return result;
}

Json nodes_json(const Section& section, Lists& lists) {
  Json result = columns({"op", "layer", "phase"});
  for (const Node& node : section.nodes) {
    result["op"].push_back(lists.ops.index_of(std::string(node.op->name)));
    result["layer"].push_back(lists.layers.index_of(node.layer));
    result["phase"].push_back(static_cast<int>(node.phase));
  }
  return result;
}

}  // namespace

Json timeline_json(const Plan& plan) {
  const SectionId fullest = peak_moment(plan).section;
  Lists lists;
  Json sections = Json::array();
  for (std::size_t s = 0; s < plan.program.sections.size(); ++s) {
    const Section& section = plan.program.sections[s];
    // Sections that run once, or after loading, matter only if they have the peak.
    const bool aside = section.kind == SectionKind::init || section.kind == SectionKind::derive;
    if (aside && section.id() != fullest) continue;
    sections.push_back({{"section", to_string(section.id())},
                        {"runs", runs_per_step(plan.program, section)},
                        {"placed_by", plan.sections[s].method},
                        {"nodes", nodes_json(section, lists)},
                        {"values", values_json(section, plan.sections[s], lists)}});
  }
  Json states = states_json(plan, lists);
  Json classes = Json::array();
  for (int c = 0; c < kMemoryClasses; ++c) classes.push_back(name_of(static_cast<MemoryClass>(c)));
  Json phases = Json::array();
  for (const Phase phase : {Phase::init, Phase::forward, Phase::recompute, Phase::backward, Phase::update}) {
    phases.push_back(name_of(phase));
  }
  NameColumn layer_names(lists.words);
  for (const std::string& layer : lists.layers.all()) layer_names.add(layer);
  Json layers_columns;
  layer_names.move_into(layers_columns);
  return {{"classes", std::move(classes)},
          {"phases", std::move(phases)},
          {"ops", lists.ops.all()},
          {"words", lists.words.all()},
          {"sizes", lists.sizes.all()},
          {"places", lists.places.all()},
          {"layers", std::move(layers_columns)},
          {"persistent_bytes", plan.persistent_bytes.count()},
          {"states", std::move(states)},
          {"sections", std::move(sections)}};
}

}  // namespace snug::report
