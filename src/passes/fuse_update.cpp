#include "passes/fuse_update.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/builder.h"
#include "ops/ops.h"
#include "ops/sgd.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

StateId state_of(const Section& section, ValueId id) { return section.value(id).state; }

class UpdateFuser {
 public:
  UpdateFuser(Program& program, Section& micro, Section& update) : program_(program), micro_(micro), update_(update) {}

  void run() {
    take_sums_apart();
    place_updates();
    update_.nodes.clear();
    remove_states(program_, accumulators_);
  }

 private:
  // Lets every sum of a parameter's gradients begin with the first of them instead of an accumulator. The sums' nodes that are
  // left out stay as nodes without op until the section is put together.
  void take_sums_apart() {
    for (const Node& node : update_.nodes) accumulators_.insert(state_of(update_, node.inputs[1]));
    for (Node& node : micro_.nodes) {
      const StateId accumulator = state_of(micro_, node.outputs.front());
      if (!accumulators_.contains(accumulator)) continue;
      SNUG_CHECK(node.op == &ops::add, "'{}' is written by {}, not by a sum", program_.state(accumulator).name, node.op->name);
      const bool sum_first = state_of(micro_, node.inputs[0]) == accumulator;
      const ValueId summand = node.inputs[sum_first ? 1 : 0];
      const auto [gradient, is_first] = gradients_.try_emplace(accumulator, summand);
      if (is_first) {
        node.op = nullptr;
        continue;
      }
      Value sum = micro_.value(summand);
      sum.name = unused_name(program_.state(accumulator).name);
      sum.type = program_.state(accumulator).type;
      sum.role = Role::gradient;
      micro_.values.push_back(std::move(sum));
      node.inputs = {gradient->second, summand};
      node.outputs = {ValueId(micro_.values.size() - 1)};
      gradient->second = node.outputs.front();
    }
  }

  std::string unused_name(const std::string& wanted) const {
    const auto taken = [&](const std::string& name) {
      return std::any_of(micro_.values.begin(), micro_.values.end(),
                         [&](const Value& value) { return !value.is_state() && value.name == name; });
    };
    std::string name = wanted;
    for (int number = 2; taken(name); ++number) name = fmt::format("{}.{}", wanted, number);
    return name;
  }

  void place_updates() {
    const std::size_t end = micro_.nodes.size();
    std::unordered_map<StateId, std::size_t> last_read;  // of every state's first version
    std::vector<std::size_t> made(micro_.values.size(), 0);
    for (std::size_t i = 0; i < end; ++i) {
      if (micro_.nodes[i].op == nullptr) continue;
      for (const ValueId id : micro_.nodes[i].inputs) last_read[state_of(micro_, id)] = i;
      for (const ValueId id : micro_.nodes[i].outputs) made[id.index()] = i;
    }
    std::vector<std::vector<std::size_t>> behind(end);  // the updates behind each node
    SectionBuilder builder(program_.states, micro_);
    const ValueId guard = emit_guard(builder);
    for (const Node& node : update_.nodes) {
      const StateId weight = state_of(update_, node.inputs[0]);
      const ValueId gradient = gradients_.at(state_of(update_, node.inputs[1]));
      behind[std::max(last_read[weight], made[gradient.index()])].push_back(micro_.nodes.size());
      emit_update(builder, node, gradient, guard);
    }

    // The guard stands before the first update: by then forward has ended.
    std::vector<Node> ordered;
    bool guarded = false;
    for (std::size_t i = 0; i < end; ++i) {
      if (micro_.nodes[i].op != nullptr) ordered.push_back(std::move(micro_.nodes[i]));
      if (behind[i].empty()) continue;
      if (!guarded) ordered.push_back(std::move(micro_.nodes[end]));
      guarded = true;
      for (const std::size_t update : behind[i]) ordered.push_back(std::move(micro_.nodes[update]));
    }
    micro_.nodes = std::move(ordered);
  }

  ValueId emit_guard(SectionBuilder& builder) const {
    const StateId metrics = program_.find_state("metrics");
    SNUG_CHECK(metrics.valid(), "the program '{}' has no metrics to tell a loss that is not finite by", program_.name);
    std::string layer;  // the loss's
    for (const Node& node : micro_.nodes) {
      if (state_of(micro_, node.outputs.front()) == metrics) layer = node.layer;
    }
    return builder
        .emit(ops::finite_factor, {builder.read(metrics)}, {},
              {.name = "update_guard", .layer = layer, .role = Role::scalar, .phase = Phase::update})
        .front();
  }

  void emit_update(SectionBuilder& builder, const Node& node, ValueId gradient, ValueId guard) const {
    const StateId weight = state_of(update_, node.inputs[0]);
    std::vector<ValueId> inputs{builder.read(weight), gradient, builder.read(state_of(update_, node.inputs[2]))};
    std::vector<StateId> writes{weight, StateId::none()};
    for (std::size_t i = 0; i < ops::optimizer_states(*node.op, node.attributes); ++i) {
      writes.push_back(state_of(update_, node.inputs[3 + i]));
      inputs.push_back(builder.read(writes.back()));
    }
    inputs.push_back(guard);
    builder.emit(*node.op, std::move(inputs), node.attributes,
                 {.name = program_.state(weight).name,
                  .layer = node.layer,
                  .role = Role::gradient,
                  .phase = Phase::update,
                  .writes = std::move(writes)});
  }

  Program& program_;
  Section& micro_;
  Section& update_;
  std::unordered_set<StateId> accumulators_;
  std::unordered_map<StateId, ValueId> gradients_;  // by accumulator: what stands for it by now
};

// Why a program cannot have it, as the end of a sentence; empty when it can.
std::string objection_to(const Program& program) {
  if (program.microbatch != program.batch) {
    return fmt::format("a step adds up the gradients of {} microbatches before it; give the whole batch one microbatch of {}",
                       (program.batch + program.microbatch - 1) / program.microbatch, program.batch);
  }
  const Section* update = program.find_section(SectionKind::update);
  const auto steps = [](const Node& node) { return node.op == &ops::momentum_step; };
  if (update != nullptr && std::any_of(update->nodes.begin(), update->nodes.end(), steps))
    return "drop_gradients has taken the gradients' accumulators away already; leave out one of the two";
  if (update != nullptr && std::any_of(update->nodes.begin(), update->nodes.end(), [](const Node& node) {
        return node.op == &ops::clip_factor && node.attributes.integer_or("finds_overflow", 0) != 0;
      })) {
    return "dynamic loss scaling looks at all gradients before it; use fp32 or bf16, or leave out the pass";
  }
  const bool plain = update == nullptr || std::all_of(update->nodes.begin(), update->nodes.end(), [](const Node& node) {
                       return (node.op == &ops::sgd || node.op == &ops::sgd_quantised) &&
                              node.inputs.size() == 3 + ops::optimizer_states(*node.op, node.attributes);
                     });
  if (!plain) return "clipping needs the norm of all gradients before it; leave out one of the two";
  return {};
}

}  // namespace

Program fuse_update(Program program, const PassContext& /*context*/) {
  if (const std::string objection = objection_to(program); !objection.empty())
    throw_user_error("pass 'fuse_update' makes each update during backward, but {}", objection);
  Section* micro = find_section(program, SectionKind::micro);
  Section* update = find_section(program, SectionKind::update);
  if (micro != nullptr && update != nullptr && !update->nodes.empty()) UpdateFuser(program, *micro, *update).run();
  return program;
}

}  // namespace snug
