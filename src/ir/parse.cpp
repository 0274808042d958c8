#include <charconv>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/text.h"

namespace snug {

namespace {

// Reads one line of the text form, left to right.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) { skip_spaces(); }

  bool at_end() const { return rest_.empty(); }

  bool accept(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }

  // Like accept, but the token must not run on into a longer word, nor be the name of a state ("state@1").
  bool accept_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    if (rest_.size() > word.size() && (is_name_character(rest_[word.size()]) || rest_[word.size()] == '@')) return false;
    return accept(word);
  }

  void expect(std::string_view token) { expected(accept(token), token); }
  void expect_word(std::string_view word) { expected(accept_word(word), word); }

  std::string_view name() {
    std::size_t length = 0;
    while (length < rest_.size() && is_name_character(rest_[length])) ++length;
    if (length == 0) throw_user_error("expected a name before '{}'", rest_.substr(0, 40));
    const std::string_view result = rest_.substr(0, length);
    rest_.remove_prefix(length);
    skip_spaces();
    return result;
  }

  std::int64_t integer() {
    std::int64_t value = 0;
    take_number(std::from_chars(rest_.data(), rest_.data() + rest_.size(), value), "a whole number");
    return value;
  }

  // A number is real when its digits say so: it has a point, an exponent, or is not finite (which is refused).
  Attribute number() {
    std::size_t length = 0;
    while (length < rest_.size() && std::string_view("+-.0123456789einfa").find(rest_[length]) != std::string_view::npos)
      ++length;
    if (rest_.substr(0, length).find_first_of(".en") == std::string_view::npos) return integer();
    double value = 0;
    take_number(std::from_chars(rest_.data(), rest_.data() + length, value), "a number");
    if (!std::isfinite(value)) throw UserError("a number is not finite");
    return value;
  }

 private:
  static bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ||
           c == '/';
  }

  void expected(bool found, std::string_view token) const {
    if (!found) throw_user_error("expected '{}' before '{}'", token, rest_.substr(0, 40));
  }

  void take_number(std::from_chars_result result, std::string_view what) {
    if (result.ec != std::errc()) throw_user_error("expected {} before '{}'", what, rest_.substr(0, 40));
    rest_.remove_prefix(static_cast<std::size_t>(result.ptr - rest_.data()));
    skip_spaces();
  }

  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

// An enumerator by its printed name.
template <typename Enum>
Enum parse_enum(std::string_view name, Enum last, std::string_view what) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  throw_user_error("'{}' is not a {}", name, what);
}

Type parse_type(Line& line) {
  const std::string_view name = line.name();
  const auto dtype = parse_dtype(name);
  if (!dtype) throw_user_error("'{}' is not an element type", name);
  Type type{.dtype = *dtype, .shape = {}};
  line.expect("[");
  std::vector<std::int64_t> dims;
  while (!line.accept("]")) {
    if (!dims.empty()) line.expect("x");
    dims.push_back(line.integer());
  }
  type.shape = Shape(dims);
  if (line.accept("/channels_last")) type.layout = Layout::channels_last();
  if (line.accept("/opaque(")) {
    type.layout.kind = Layout::Kind::opaque;
    type.layout.opaque_name = line.name();
    line.expect(",");
    const std::int64_t bytes = line.integer();
    if (bytes < 0 || bytes > Shape::kMaxElements) throw_user_error("a layout of {} bytes is not possible", bytes);
    type.layout.opaque_bytes = Bytes(bytes);
    line.expect(")");
  }
  return type;
}

Attribute parse_attribute(Line& line) {
  if (!line.accept("[")) return line.number();
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  while (!line.accept("]")) {
    if (!integers.empty() || !reals.empty()) line.expect(",");
    const Attribute element = line.number();
    if (const auto* value = std::get_if<std::int64_t>(&element)) {
      integers.push_back(*value);
    } else {
      reals.push_back(std::get<double>(element));
    }
    if (!integers.empty() && !reals.empty()) throw UserError("a list mixes whole and real numbers");
  }
  if (!reals.empty()) return reals;
  return integers;
}

class Parser {
 public:
  explicit Parser(OpLookup find_op) : find_op_(find_op) {}

  Program parse(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++number;
      try {
        statement(text.substr(0, end));
      } catch (const UserError& error) {
        throw_user_error("line {} of the program: {}", number, error.what());
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (program_.name.empty()) throw UserError("the text is not a program: its first line must begin with 'program'");
    return std::move(program_);
  }

 private:
  void statement(std::string_view text) {
    Line line(text);
    if (line.at_end()) return;
    if (program_.name.empty()) {
      header(line);
    } else if (line.accept_word("state")) {
      state(line);
    } else if (line.accept_word("section")) {
      program_.sections.push_back(section_header(line));
      transients_.clear();
      versions_.clear();
    } else if (line.accept_word("in_evaluation")) {
      substitute(line);
    } else {
      node(line);
    }
    if (!line.at_end()) throw UserError("unexpected text at the end of the line");
  }

  static Section section_header(Line& line) {
    Section section{.kind = parse_section_kind(line.name()), .values = {}, .nodes = {}};
    if (line.accept_word("of")) {
      section.shape.examples = line.integer();
      if (line.accept("x")) section.shape.length = line.integer();
      if (section.shape.examples < 1 || section.shape.length < 0) throw UserError("a section cannot run on so few examples");
    }
    return section;
  }

  void substitute(Line& line) {
    section();
    const ValueId evaluated = use(line);
    line.expect_word("for");
    section().in_evaluation.push_back({.trained = use(line), .evaluated = evaluated});
  }

  void header(Line& line) {
    line.expect_word("program");
    program_.name = line.name();
    line.expect_word("batch");
    program_.batch = line.integer();
    line.expect_word("microbatch");
    program_.microbatch = line.integer();
  }

  void state(Line& line) {
    if (!program_.sections.empty()) throw UserError("states must come before the first section");
    State state{.name = std::string(line.name()), .type = {}};
    line.expect(":");
    state.type = parse_type(line);
    state.role = parse_enum(line.name(), Role::scalar, "role");
    if (line.accept_word("host")) state.space = MemorySpace::host;
    state.trainable = line.accept_word("trainable");
    if (line.at_end()) {
      find_owner(state);
    } else {
      if (!line.accept_word("of")) {
        state.purpose = line.name();
        if (!line.accept_word("of")) throw UserError("unexpected text at the end of the line");
      }
      state.owner = known_state(line.name());
    }
    if (!states_.try_emplace(state.name, program_.states.size()).second) throw_user_error("state '{}' appears twice", state.name);
    const StateId id(program_.states.size());
    for (const KnownState& known : kKnownStates) {
      if (state.name == known.name) program_.*known.field = id;
    }
    program_.states.push_back(std::move(state));
  }

  StateId known_state(std::string_view name) const {
    const auto found = states_.find(std::string(name));
    if (found == states_.end()) throw_user_error("there is no state '{}'", name);
    return StateId(found->second);
  }

  // In older texts states have no owners; their names say the same.
  void find_owner(State& state) const {
    const auto belongs = [&](std::string_view suffix, std::string_view purpose) {
      const std::size_t at = state.name.rfind(suffix);
      if (at == std::string::npos) return false;
      const auto found = states_.find(state.name.substr(0, at));
      if (found == states_.end()) return false;
      state.owner = StateId(found->second);
      state.purpose = purpose;
      return true;
    };
    if (state.role == Role::gradient) belongs(".grad", "");
    if (state.role != Role::optimizer) return;
    if (!belongs(".momentum.codes", "codes") && !belongs(".momentum.scales", "scales")) belongs(".momentum", "momentum");
  }

  Section& section() {
    if (program_.sections.empty()) throw UserError("a node is outside a section");
    return program_.sections.back();
  }

  ValueId add_value(Value value) {
    section().values.push_back(std::move(value));
    return ValueId(section().values.size() - 1);
  }

  // A value that a node reads. A state's version may appear here first; a transient value must have been made.
  ValueId use(Line& line) {
    if (line.accept("%")) {
      const std::string name(line.name());
      const auto found = transients_.find(name);
      if (found == transients_.end() || !found->second.valid()) throw_user_error("%{} is read before it is made", name);
      return found->second;
    }
    return state_version(line);
  }

  ValueId state_version(Line& line) {
    const std::string name(line.name());
    const auto found = states_.find(name);
    if (found == states_.end()) throw_user_error("there is no state '{}'", name);
    line.expect("@");
    const std::int64_t version = line.integer();
    if (version < 0 || version > 1'000'000) throw_user_error("version {} of '{}' is not possible", version, name);
    const auto [entry, is_new] = versions_.try_emplace(fmt::format("{}@{}", name, version), ValueId::none());
    if (is_new) {
      const State& s = program_.states[found->second];
      entry->second = add_value({.name = s.name,
                                 .type = line.accept_word("as") ? parse_type(line) : s.type,
                                 .role = s.role,
                                 .space = s.space,
                                 .state = StateId(found->second),
                                 .version = static_cast<int>(version)});
    } else if (line.accept_word("as") && parse_type(line) != section().value(entry->second).type) {
      throw_user_error("{}@{} has two types", name, version);
    }
    return entry->second;
  }

  // A value that the node makes. Nothing can read it before made() says that the node is complete.
  ValueId define(Line& line) {
    if (!line.accept("%")) return state_version(line);
    const std::string name(line.name());
    check_name(name);
    if (!transients_.try_emplace(name, ValueId::none()).second) throw_user_error("%{} is made twice", name);
    return add_value({.name = name, .type = {}});
  }

  void made(ValueId id) {
    const Value& value = section().value(id);
    if (!value.is_state()) transients_[value.name] = id;
  }

  void output_type(Line& line, ValueId id) {
    if (section().value(id).is_state()) {
      line.expect("state");
      return;
    }
    const Type type = parse_type(line);
    const Role role = parse_enum(line.name(), Role::scalar, "role");
    const MemorySpace space = line.accept_word("host") ? MemorySpace::host : MemorySpace::device;
    const ValueId shares = line.accept_word("in") ? use(line) : ValueId::none();
    Value& value = section().value(id);
    value.type = type;
    value.role = role;
    value.space = space;
    value.shares = shares;
  }

  void node(Line& line) {
    section();
    Node node;
    do {
      node.outputs.push_back(define(line));
    } while (line.accept(","));
    line.expect("=");
    const std::string_view op = line.name();
    node.op = find_op_(op);
    if (node.op == nullptr) throw_user_error("there is no op '{}'", op);
    line.expect("(");
    while (!line.accept(")")) {
      if (!node.inputs.empty()) line.expect(",");
      node.inputs.push_back(use(line));
    }
    if (line.accept("{")) {
      do {
        const std::string name(line.name());
        if (node.attributes.has(name)) throw_user_error("attribute '{}' appears twice", name);
        line.expect("=");
        node.attributes.set(name, parse_attribute(line));
      } while (line.accept(","));
      line.expect("}");
    }
    line.expect(":");
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (i != 0) line.expect(",");
      output_type(line, node.outputs[i]);
    }
    if (line.accept_word("using")) node.kernel = line.name();
    if (line.accept_word("workspace")) {
      node.workspace = define(line);
      const Type type = parse_type(line);
      section().value(node.workspace).type = type;
      section().value(node.workspace).role = Role::workspace;
    }
    line.expect(";");
    node.phase = parse_enum(line.name(), Phase::update, "phase");
    if (!line.at_end()) node.layer = line.name();
    for (const ValueId output : node.outputs) made(output);
    if (node.workspace.valid()) made(node.workspace);
    section().nodes.push_back(std::move(node));
  }

  OpLookup find_op_;
  Program program_;
  std::unordered_map<std::string, std::size_t> states_;
  std::unordered_map<std::string, ValueId> transients_;  // of the current section; none: its node is not complete
  std::unordered_map<std::string, ValueId> versions_;    // "name@version" of the current section
};

}  // namespace

SectionKind parse_section_kind(std::string_view name) {
  return name == "rewire" ? SectionKind::periodic : parse_enum(name, SectionKind::decode, "section");
}

Program parse_program(std::string_view text, OpLookup find_op) { return Parser(find_op).parse(text); }

}  // namespace snug
