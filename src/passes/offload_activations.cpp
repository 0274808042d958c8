#include "passes/offload_activations.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/builder.h"
#include "ops/ops.h"

namespace snug {

namespace {

// Below this two copies cost more than the bytes are worth.
constexpr Bytes kLeastBytes{4096};

class Offloader {
 public:
  Offloader(const std::vector<State>& states, Section& section)
      : section_(section), lives_(section.values.size()), builder_(states, section) {}

  void run() {
    find_lives();
    std::vector<Node> nodes = std::move(section_.nodes);
    section_.nodes.clear();
    for (std::size_t v = 0; v < lives_.size(); ++v) {
      if (waits(ValueId(v))) offload(ValueId(v), nodes);
    }
    put_together(std::move(nodes));
  }

 private:
  struct Life {
    bool is_made = false;  // by a forward node
    std::size_t maker = 0;
    std::size_t last_forward = 0;      // the last forward node that makes or reads it
    std::vector<std::size_t> readers;  // behind forward
  };

  void find_lives() {
    const auto is_behind = [](const Node& node) { return node.phase == Phase::backward || node.phase == Phase::recompute; };
    const auto behind = std::find_if(section_.nodes.begin(), section_.nodes.end(), is_behind);
    const auto end = static_cast<std::size_t>(behind - section_.nodes.begin());
    for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
      for (const ValueId input : section_.nodes[i].inputs) {
        Life& life = lives_[input.index()];
        if (i < end)
          life.last_forward = i;
        else
          life.readers.push_back(i);
      }
      for (const ValueId output : section_.nodes[i].outputs) {
        Life& life = lives_[output.index()];
        life.is_made = i < end;
        life.maker = life.last_forward = i;
      }
    }
  }

  // It is large, and there is a time in which it is only kept.
  bool waits(ValueId id) const {
    const Value& value = section_.value(id);
    const Life& life = lives_[id.index()];
    return life.is_made && !value.is_state() && value.space == MemorySpace::device && value.type.bytes() >= kLeastBytes &&
           !life.readers.empty() && life.readers.front() > life.last_forward + 1;
  }

  void offload(ValueId id, std::vector<Node>& nodes) {
    const Life& life = lives_[id.index()];
    const std::string name = section_.value(id).name;
    const auto copy = [&](ValueId from, std::int64_t host, const std::string& suffix, Phase phase) {
      const EmitOptions options{
          .name = name + suffix, .layer = nodes[life.maker].layer, .role = section_.value(id).role, .phase = phase};
      return builder_.emit(ops::copy_to_space, {from}, {{"host", host}}, options).front();
    };
    const ValueId kept = copy(id, 1, ".host", Phase::forward);
    behind_[life.last_forward].push_back(take());
    const ValueId back = copy(kept, 0, ".back", Phase::backward);
    before_[life.readers.front()].push_back(take());
    for (const std::size_t reader : life.readers) std::ranges::replace(nodes[reader].inputs, id, back);
  }

  // The node that was emitted last.
  Node take() {
    Node node = std::move(section_.nodes.back());
    section_.nodes.pop_back();
    return node;
  }

  void put_together(std::vector<Node> nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (Node& node : before_[i]) section_.nodes.push_back(std::move(node));
      section_.nodes.push_back(std::move(nodes[i]));
      for (Node& node : behind_[i]) section_.nodes.push_back(std::move(node));
    }
  }

  Section& section_;
  std::vector<Life> lives_;  // by value
  SectionBuilder builder_;
  std::map<std::size_t, std::vector<Node>> before_, behind_;  // copies, by the node that they stand beside
};

}  // namespace

Program offload_activations(Program program, const PassContext& /*context*/) {
  for (Section& section : program.sections) {
    if (section.kind == SectionKind::micro) Offloader(program.states, section).run();
  }
  return program;
}

}  // namespace snug
