// The program: a training step as a straight list of nodes over values, in SSA form, in execution order, with every shape known.
// Every memory method is a rewrite of this list; memory is liveness of this list.
#pragma once

#include <array>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong_id.h"
#include "ir/attributes.h"
#include "ir/type.h"

namespace snug {

struct OpDef;

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;
using StateId = StrongId<struct StateTag>;

// Why a value exists; the classes of the memory report follow from it.
enum class Role : std::uint8_t {
  parameter,
  gradient,
  optimizer,
  statistic,
  activation,
  activation_gradient,
  workspace,
  input,
  scalar
};
// Where a value lies: `device` is where kernels compute, `host` the memory beside it. On a device without memory of its own both
// are in main memory.
enum class MemorySpace : std::uint8_t { device, host };
inline constexpr std::array kMemorySpaces{MemorySpace::device, MemorySpace::host};
enum class Phase : std::uint8_t { init, forward, recompute, backward, update };
// A model has `init` and `forward`; `differentiate` makes `micro` and `eval` of the latter, `add_update` adds `update`. A program
// that writes text has `decode` alone, which `decode_only` makes of `eval`.
enum class SectionKind : std::uint8_t { init, micro, update, periodic, eval, derive, forward, decode };
// How often a run of the program runs a section of a kind. The periods of `periodically` are data of the run.
enum class Schedule : std::uint8_t { once, per_microbatch, per_step, periodically, for_evaluation, after_loading, never };
Schedule schedule_of(SectionKind kind);

// What a section runs on, where a program has several of one kind: how many examples, and how many elements each has, if that
// differs too. All zero: the program's own microbatch.
struct RunShape {
  std::int64_t examples = 0;
  std::int64_t length = 0;

  friend auto operator<=>(const RunShape&, const RunShape&) = default;
};
struct SectionId {
  SectionId(SectionKind the_kind, RunShape the_shape = {})
      : kind(the_kind), shape(the_shape) {}  // NOLINT: a kind names a section

  SectionKind kind;
  RunShape shape;

  friend auto operator<=>(const SectionId&, const SectionId&) = default;
};

std::string_view name_of(Role role);
std::string_view name_of(MemorySpace space);
std::string_view name_of(Phase phase);
std::string_view name_of(SectionKind kind);
std::string to_string(const SectionId& id);  // "micro", "micro of 7", "micro of 7x128"

// What outlives a section: parameters, gradient accumulators, optimizer state, statistics, input staging, scalars.
struct State {
  std::string name;
  Type type;
  Role role = Role::parameter;
  MemorySpace space = MemorySpace::device;
  bool trainable = false;
  StateId owner = StateId::none();  // the parameter that a gradient or an optimizer's state belongs to
  std::string purpose = {};         // of an optimizer's state, as the update rule names it: "momentum"
};

// A value is either transient (made by a node, dead after its last reader) or one version of a state: `w@0` as the section finds
// it, `w@1` after the first node that writes it.
struct Value {
  std::string name;
  Type type;
  Role role = Role::activation;
  MemorySpace space = MemorySpace::device;
  StateId state = StateId::none();
  int version = 0;                   // of the state
  ValueId shares = ValueId::none();  // takes the bytes of this input of its own node

  bool is_state() const { return state.valid(); }
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  Phase phase = Phase::forward;
  std::string layer;                    // where in the model it comes from, for display
  std::string kernel;                   // chosen by a pass; empty before
  ValueId workspace = ValueId::none();  // the kernel's scratch, alive while the node runs
};

// In evaluation, `evaluated` is read where training reads `trained`: running statistics instead of those of the batch, a
// dropout's input instead of its output, plain images instead of augmented ones.
struct Substitute {
  ValueId trained;
  ValueId evaluated;
};

struct Section {
  SectionKind kind = SectionKind::micro;
  std::vector<Value> values;
  std::vector<Node> nodes;
  RunShape shape = {};
  std::vector<Substitute> in_evaluation = {};  // of `forward`

  SectionId id() const { return {kind, shape}; }

  const Value& value(ValueId id) const { return values[id.index()]; }
  Value& value(ValueId id) { return values[id.index()]; }
  // The state that the value is a version of; none: it is transient.
  StateId state_of(ValueId id) const { return values[id.index()].state; }
};

struct Program {
  std::string name;
  std::int64_t batch = 0;       // examples per step
  std::int64_t microbatch = 0;  // examples per run of `micro`
  std::vector<State> states;
  // Those that the runtime and passes know; none: the program has no such state.
  StateId scalars = StateId::none();        // what changes between steps (ir/scalars.h)
  StateId metrics = StateId::none();        // what microbatches add to
  StateId gradient_norm = StateId::none();  // what an update that reads all gradients finds
  StateId updates = StateId::none();        // f64[1]: how many updates were made, in programs whose rule counts them
  StateId scores = StateId::none();         // what the loss judges, one row each, in programs whose evaluation keeps it
  std::vector<Section> sections;

  const State& state(StateId id) const { return states[id.index()]; }
  // The section of that kind and shape, or nullptr.
  const Section* find_section(SectionId id) const;
  Section* find_section(SectionId id);
  // The same; InternalError when there is none.
  const Section& section(SectionId id) const;
  Section& section(SectionId id);
  // Examples that a section runs on.
  std::int64_t examples_of(const Section& section) const {
    return section.shape.examples == 0 ? microbatch : section.shape.examples;
  }
  // The state of that name, or none.
  StateId find_state(std::string_view state_name) const;
};

// The fields of a program that are states, by the names that such states have.
struct KnownState {
  std::string_view name;
  StateId Program::*field;
};
inline constexpr std::array kKnownStates{KnownState{"scalars", &Program::scalars}, KnownState{"metrics", &Program::metrics},
                                         KnownState{"gradient_norm", &Program::gradient_norm},
                                         KnownState{"updates", &Program::updates}, KnownState{"scores", &Program::scores}};

// The node where backward begins (OpDef::loss); none where the section has no loss.
NodeId find_loss(const Section& section);

// For every value of the section: the node that makes it (none for a state's first version) and the last that reads or makes it.
struct ValueLife {
  NodeId producer = NodeId::none();
  NodeId last_use = NodeId::none();
};
std::vector<ValueLife> value_lives(const Section& section);

// A node's operands as ops and kernels see them: types, not ids.
struct NodeTypes {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  bool touches_host = false;  // some operand lies in host memory
};
NodeTypes types_of(const Section& section, const Node& node);

}  // namespace snug
