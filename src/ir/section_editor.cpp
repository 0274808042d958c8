#include "ir/section_editor.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace snug {

namespace {

const std::vector<State> kNoStates;
const std::vector<std::size_t> kNoReaders;

}  // namespace

SectionEditor::SectionEditor(const std::vector<State>& states, Section& section) : section_(section), builder_(states, section) {}

SectionEditor::SectionEditor(Section& section) : SectionEditor(kNoStates, section) {}

void SectionEditor::find_makers() {
  maker_.assign(section_.values.size(), kNobody);
  root_.resize(section_.values.size());
  for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = ValueId(v);
  for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
    const Node& node = section_.nodes[i];
    for (const ValueId id : node.outputs) {
      maker_[id.index()] = i;
      const StateId state = section_.state_of(id);
      if (!state.valid()) continue;
      if (last_writer_.size() <= state.index()) last_writer_.resize(state.index() + 1, kNobody);
      last_writer_[state.index()] = i;
    }
    if (node.op->is_view) root_[node.outputs[0].index()] = root_[node.inputs[0].index()];
  }
}

void SectionEditor::find_readers() {
  readers_.assign(section_.values.size(), {});
  for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
    if (is_erased(i)) continue;
    for (const ValueId id : section_.nodes[i].inputs) readers_[id.index()].push_back(i);
  }
}

std::size_t SectionEditor::maker(ValueId id) {
  if (maker_.empty()) find_makers();
  return id.index() < maker_.size() ? maker_[id.index()] : kNobody;
}

ValueId SectionEditor::root(ValueId id) {
  if (maker_.empty()) find_makers();
  return id.index() < root_.size() ? root_[id.index()] : id;
}

std::size_t SectionEditor::last_writer(StateId state) {
  if (maker_.empty()) find_makers();
  return state.index() < last_writer_.size() ? last_writer_[state.index()] : kNobody;
}

const std::vector<std::size_t>& SectionEditor::readers(ValueId id) {
  if (readers_.empty()) find_readers();
  return id.index() < readers_.size() ? readers_[id.index()] : kNoReaders;
}

std::size_t SectionEditor::last_use(ValueId id) {
  const std::vector<std::size_t>& all = readers(id);
  return all.empty() ? maker(id) : all.back();
}

std::vector<ValueId> SectionEditor::emit(std::size_t at, Beside beside, const OpDef& op, std::vector<ValueId> inputs,
                                         Attributes attributes, const EmitOptions& options) {
  pending_.push_back({at, beside, builder_.make(op, std::move(inputs), std::move(attributes), options)});
  return pending_.back().node.outputs;
}

std::vector<ValueId> SectionEditor::emit_before(std::size_t at, const OpDef& op, std::vector<ValueId> inputs,
                                                Attributes attributes, const EmitOptions& options) {
  return emit(at, Beside::before, op, std::move(inputs), std::move(attributes), options);
}

std::vector<ValueId> SectionEditor::emit_behind(std::size_t at, const OpDef& op, std::vector<ValueId> inputs,
                                                Attributes attributes, const EmitOptions& options) {
  return emit(at, Beside::behind, op, std::move(inputs), std::move(attributes), options);
}

std::vector<ValueId> SectionEditor::emit_instead(std::size_t at, const OpDef& op, std::vector<ValueId> inputs,
                                                 Attributes attributes, const EmitOptions& options) {
  erase(at);
  return emit(at, Beside::instead, op, std::move(inputs), std::move(attributes), options);
}

void SectionEditor::insert_before(std::size_t at, Node node) { pending_.push_back({at, Beside::before, std::move(node)}); }

void SectionEditor::erase(std::size_t at) {
  if (erased_.empty()) erased_.assign(section_.nodes.size(), false);
  erased_[at] = true;
  if (readers_.empty()) return;
  for (const ValueId id : section_.nodes[at].inputs) {
    if (id.index() < readers_.size()) std::erase(readers_[id.index()], at);
  }
}

void SectionEditor::replace_uses(ValueId id, ValueId with, std::size_t from) {
  std::vector<std::size_t> stay;
  for (const std::size_t at : std::vector(readers(id))) {
    if (at < from) {
      stay.push_back(at);
      continue;
    }
    std::vector<ValueId>& inputs = section_.nodes[at].inputs;
    std::replace(inputs.begin(), inputs.end(), id, with);
    note_reader(with, at);
  }
  if (id.index() < readers_.size()) readers_[id.index()] = std::move(stay);
}

void SectionEditor::note_reader(ValueId id, std::size_t at) {
  if (id.index() >= readers_.size()) return;
  std::vector<std::size_t>& all = readers_[id.index()];
  all.insert(std::upper_bound(all.begin(), all.end(), at), at);
}

void SectionEditor::add_input(std::size_t at, ValueId id) {
  section_.nodes[at].inputs.push_back(id);
  note_reader(id, at);
}

void SectionEditor::set_output(std::size_t at, std::size_t output, ValueId id) {
  ValueId& now = section_.nodes[at].outputs[output];
  if (now.index() < maker_.size()) maker_[now.index()] = kNobody;
  if (id.index() < maker_.size()) maker_[id.index()] = at;
  now = id;
}

ValueId SectionEditor::add_value(Value value) { return builder_.add_value(std::move(value)); }

Node SectionEditor::clone(const Node& original) {
  Node clone = original;
  clone.phase = Phase::recompute;
  const auto copy = [&](ValueId id) {
    Value value = section_.value(id);
    if (!value.name.empty()) value.name += ".again";
    return add_value(std::move(value));
  };
  for (ValueId& output : clone.outputs) output = copy(output);
  if (clone.workspace.valid()) clone.workspace = copy(clone.workspace);
  return clone;
}

void SectionEditor::apply() {
  std::vector<std::size_t> order(pending_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&](std::size_t i) { return std::pair(pending_[i].at, pending_[i].beside); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });

  std::vector<Node> ordered;
  ordered.reserve(section_.nodes.size() + pending_.size());
  auto next = order.begin();
  const auto put = [&](std::size_t at, Beside beside) {
    for (; next != order.end() && place(*next) == std::pair(at, beside); ++next)
      ordered.push_back(std::move(pending_[*next].node));
  };
  for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
    put(i, Beside::before);
    put(i, Beside::instead);
    if (!is_erased(i)) ordered.push_back(std::move(section_.nodes[i]));
    put(i, Beside::behind);
  }
  put(section_.nodes.size(), Beside::before);
  SNUG_CHECK(next == order.end(), "a node was put beside one that does not exist");
  section_.nodes = std::move(ordered);
  maker_.clear();
  root_.clear();
  last_writer_.clear();
  readers_.clear();
  pending_.clear();
  erased_.clear();
}

}  // namespace snug
