#include "ir/verify.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "ir/op.h"
#include "ir/text.h"

namespace snug {

namespace {

class SectionVerifier {
 public:
  SectionVerifier(const Program& program, const Section& section)
      : program_(program), section_(section), made_(section.values.size(), false), version_(program.states.size(), 0) {
    transient_names_.reserve(section.values.size());
  }

  std::optional<std::string> run() {
    find_buffers();
    for (const Node& node : section_.nodes) {
      if (auto defect = check(node)) {
        return fmt::format("section {}: {}\n  in: {}", to_string(section_.id()), *defect, print_safely(node));
      }
    }
    if (auto defect = check_substitutes()) return fmt::format("section {}: {}", to_string(section_.id()), *defect);
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kNoMore = std::numeric_limits<std::size_t>::max();

  bool known(ValueId id) const { return id.valid() && id.index() < section_.values.size(); }

  // A node with ids out of range cannot be printed in full.
  std::string print_safely(const Node& node) const {
    if (node.op == nullptr) return "a node without op";
    const auto unknown = [&](ValueId id) { return !known(id); };
    const auto gives_unknown = [&](ValueId id) { return section_.value(id).shares.valid() && !known(section_.value(id).shares); };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), unknown) ||
        std::any_of(node.outputs.begin(), node.outputs.end(), unknown) ||
        std::any_of(node.outputs.begin(), node.outputs.end(), gives_unknown) ||
        (node.workspace.valid() && !known(node.workspace))) {
      return fmt::format("a {} node with operands that do not exist", node.op->name);
    }
    return print(section_, node);
  }

  // Which values lie in the same bytes, and when each is read last. Nodes come in execution order, so the root of a value that
  // shares is known when its taker is reached; sharing with a value that is made later is caught as an operand read before it is
  // made.
  void find_buffers() {
    root_.resize(section_.values.size());
    last_read_.assign(section_.values.size(), -1);
    for (std::size_t i = 0; i < root_.size(); ++i) root_[i] = i;
    for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
      const Node& node = section_.nodes[i];
      for (const ValueId output : node.outputs) {
        if (known(output) && known(section_.value(output).shares))
          root_[output.index()] = root_[section_.value(output).shares.index()];
      }
      for (const ValueId input : node.inputs) {
        if (known(input)) last_read_[input.index()] = static_cast<int>(i);
      }
    }
    next_.assign(root_.size(), kNoMore);
    for (std::size_t i = root_.size(); i-- > 0;) {
      if (root_[i] == i) continue;
      next_[i] = next_[root_[i]];
      next_[root_[i]] = i;
    }
  }

  std::optional<std::string> check(const Node& node) {
    ++index_;
    if (node.op == nullptr) return "the node has no op";
    for (const ValueId input : node.inputs) {
      if (auto defect = check_input(input)) return defect;
    }
    if (auto defect = check_types(node)) return defect;
    if (auto defect = check_spaces(node)) return defect;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (auto defect = check_output(node, i)) return defect;
    }
    if (node.workspace.valid()) return check_workspace(node);
    return std::nullopt;
  }

  std::optional<std::string> check_input(ValueId input) {
    if (!known(input)) return "an input does not exist";
    const Value& value = section_.value(input);
    if (value.is_state()) {
      if (value.state.index() >= program_.states.size())
        return fmt::format("'{}' is a version of a state that does not exist", value.name);
      const int current = version_[value.state.index()];
      if (value.version != current) {
        return fmt::format("{}@{} is read when the state is at version {}", value.name, value.version, current);
      }
      return check_version(value);
    }
    if (!made_[input.index()]) return fmt::format("%{} is read before it is made", value.name);
    return std::nullopt;
  }

  std::optional<std::string> check_substitutes() const {
    for (const auto& [trained, evaluated] : section_.in_evaluation) {
      if (section_.kind != SectionKind::forward) return "only a section forward has substitutes for evaluation";
      if (!known(trained) || !known(evaluated)) return "a substitute for evaluation does not exist";
      for (const ValueId id : {trained, evaluated}) {
        const Value& value = section_.value(id);
        if (!value.is_state() && !made_[id.index()]) return fmt::format("%{} is never made", value.name);
      }
    }
    return std::nullopt;
  }

  // Every version of a state has the state's type.
  std::optional<std::string> check_version(const Value& value) const {
    const State& state = program_.state(value.state);
    if (section_.shape != RunShape{} && state.role == Role::input && value.version == 0) {
      // A prefix of what is staged.
      const bool is_part = value.type.dtype == state.type.dtype && value.type.bytes() <= state.type.bytes();
      if (!is_part)
        return fmt::format("'{}' is {}, which is not a part of {}", value.name, to_string(value.type), to_string(state.type));
    } else if (value.type != state.type) {
      return fmt::format("'{}' is not of its state's type", value.name);
    }
    if (value.space != state.space) return fmt::format("'{}' is not in its state's memory", value.name);
    return std::nullopt;
  }

  std::optional<std::string> check_types(const Node& node) const {
    const NodeTypes types = [&] {
      NodeTypes result;
      for (const ValueId id : node.inputs) result.inputs.push_back(section_.value(id).type);
      return result;
    }();
    std::vector<Type> expected;
    try {
      expected = infer_types(*node.op, {types.inputs, node.attributes});
    } catch (const UserError& error) {
      return error.what();
    }
    if (expected.size() != node.outputs.size()) {
      return fmt::format("the op makes {} outputs, the node has {}", expected.size(), node.outputs.size());
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!known(node.outputs[i])) return "an output does not exist";
      const Type& type = section_.value(node.outputs[i]).type;
      // Passes choose layouts; the op says shape and element type.
      if (type.shape != expected[i].shape || type.dtype != expected[i].dtype) {
        return fmt::format("output {} is {} but the op makes {}", i, to_string(type), to_string(expected[i]));
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> check_spaces(const Node& node) const {
    if (node.op->output_space != nullptr) {
      const MemorySpace space = node.op->output_space(node.attributes);
      for (const ValueId id : node.outputs) {
        const Value& value = section_.value(id);
        if (value.space != space) {
          return fmt::format("'{}' lies in {} memory, but the op writes {} memory", value.name, name_of(value.space),
                             name_of(space));
        }
      }
      return std::nullopt;
    }
    for (const auto* operands : {&node.inputs, &node.outputs}) {
      for (const ValueId id : *operands) {
        if (section_.value(id).space == MemorySpace::device) continue;
        return fmt::format("'{}' lies in host memory, and {} works on the device alone; copy it there first",
                           section_.value(id).name, node.op->name);
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> check_output(const Node& node, std::size_t i) {
    const ValueId output = node.outputs[i];
    const Value& value = section_.value(output);
    if (made_[output.index()]) return fmt::format("'{}' is made twice", value.name);
    made_[output.index()] = true;
    if (value.is_state()) return check_state_output(node, i, value);
    if (!transient_names_.insert(value.name).second) return fmt::format("two values are called %{}", value.name);
    if (!value.shares.valid()) return std::nullopt;
    for (std::size_t k = 0; k < i; ++k) {
      if (root_[node.outputs[k].index()] == root_[output.index()]) {
        return fmt::format("%{} lies in the bytes of another output of its node", value.name);
      }
    }
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      if (node.inputs[j] == value.shares) return check_sharing(node, i, j);
    }
    return fmt::format("%{} takes the bytes of a value that is not an input of its node", value.name);
  }

  std::optional<std::string> check_state_output(const Node& node, std::size_t i, const Value& value) {
    if (value.shares.valid()) return fmt::format("'{}' is a state and cannot take other bytes", value.name);
    if (value.state.index() >= program_.states.size())
      return fmt::format("'{}' is a version of a state that does not exist", value.name);
    for (std::size_t k = 0; k < i; ++k) {
      if (section_.value(node.outputs[k]).state == value.state)
        return fmt::format("'{}' is written twice by one node", value.name);
    }
    int& current = version_[value.state.index()];
    if (value.version != current + 1) {
      return fmt::format("{}@{} is written when the state is at version {}", value.name, value.version, current);
    }
    if (auto defect = check_version(value)) return defect;
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const Value& input = section_.value(node.inputs[j]);
      if (input.state == value.state && !promises_in_place(node, i, j)) {
        return fmt::format("the op reads '{}' while it writes it, and has not promised to work in place", value.name);
      }
    }
    current = value.version;
    return std::nullopt;
  }

  std::optional<std::string> check_sharing(const Node& node, std::size_t output, std::size_t input) const {
    const Value& taker = section_.value(node.outputs[output]);
    const Value& giver = section_.value(node.inputs[input]);
    if (giver.is_state()) return fmt::format("%{} takes the bytes of the state '{}'", taker.name, giver.name);
    if (giver.space != taker.space) return fmt::format("%{} and %{} are in different memory spaces", taker.name, giver.name);
    if (taker.type.bytes() > giver.type.bytes())
      return fmt::format("%{} is larger than %{} whose bytes it takes", taker.name, giver.name);
    if (node.op->is_view && output == 0 && input == 0) return std::nullopt;
    if (!promises_in_place(node, output, input))
      return fmt::format("{} has not promised to make output {} in input {}", node.op->name, output, input);
    // Read and written in step only if element n lies at the same place in both.
    if (giver.type.layout != taker.type.layout) {
      return fmt::format("%{} takes the bytes of %{} in another layout", taker.name, giver.name);
    }
    // The bytes are overwritten here: nothing in them may be read later, nor by this node as another operand.
    const std::size_t buffer = root_[node.inputs[input].index()];
    for (std::size_t v = buffer; v != kNoMore; v = next_[v]) {
      if (made_[v] && ValueId(v) != node.outputs[output] && last_read_[v] > index_) {
        return fmt::format("%{} is overwritten but read later", section_.values[v].name);
      }
    }
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const ValueId other = node.inputs[j];
      if (j != input && !section_.value(other).is_state() && root_[other.index()] == buffer &&
          !promises_in_place(node, output, j)) {
        return fmt::format("%{} lies in the bytes that the node overwrites", section_.value(other).name);
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> check_workspace(const Node& node) {
    if (!known(node.workspace)) return "the workspace does not exist";
    const Value& value = section_.value(node.workspace);
    if (value.is_state() || made_[node.workspace.index()] || last_read_[node.workspace.index()] >= 0 || value.shares.valid()) {
      return fmt::format("%{} is not a workspace of this node alone", value.name);
    }
    if (value.space != MemorySpace::device) return fmt::format("%{} is a workspace in host memory", value.name);
    made_[node.workspace.index()] = true;
    if (!transient_names_.insert(value.name).second) return fmt::format("two values are called %{}", value.name);
    return std::nullopt;
  }

  const Program& program_;
  const Section& section_;
  int index_ = -1;  // of the node under check
  std::vector<bool> made_;
  std::vector<int> version_;
  std::vector<std::size_t> root_;
  std::vector<std::size_t> next_;  // by value: the next in the same bytes, from the root on
  std::vector<int> last_read_;
  std::unordered_set<std::string_view> transient_names_;
};

}  // namespace

std::optional<std::string> find_defect(const Program& program) {
  if (program.batch < 1 || program.microbatch < 1 || program.microbatch > program.batch) {
    return fmt::format("a microbatch of {} out of a batch of {} is not possible", program.microbatch, program.batch);
  }
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const State& state = program.states[i];
    if (!names.insert(state.name).second) return fmt::format("two states are called '{}'", state.name);
    if (state.owner.valid() && state.owner.index() >= i)
      return fmt::format("state '{}' belongs to one that does not come before it", state.name);
    if (!state.purpose.empty() && !state.owner.valid())
      return fmt::format("state '{}' is the {} of no other state", state.name, state.purpose);
  }
  std::set<SectionId> ids;
  for (const Section& section : program.sections) {
    if (!ids.insert(section.id()).second) return fmt::format("there are two sections '{}'", to_string(section.id()));
    if (section.shape.examples < 0 || section.shape.length < 0 || section.shape.examples > program.microbatch)
      return fmt::format("section {} runs on more than a microbatch of {}", to_string(section.id()), program.microbatch);
    if (auto defect = SectionVerifier(program, section).run()) return defect;
  }
  return std::nullopt;
}

void verify(const Program& program, std::string_view when) {
  if (const auto defect = find_defect(program)) {
    throw InternalError(fmt::format("the program '{}' is broken {}: {}", program.name, when, *defect));
  }
}

}  // namespace snug
