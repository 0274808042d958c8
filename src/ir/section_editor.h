// Edits a section anywhere: inserts nodes, replaces operands, erases nodes.
//
//   SectionEditor editor(program.states, section);
//   const ValueId bits = editor.emit_behind(editor.maker(y), sign_bits, {y}, {}, {.name = "y.sign"}).front();
//   editor.replace_uses(y, bits, first_backward);
//   editor.apply();
//
// Positions are those of the nodes as they were when the editor was made: they hold until apply(), which puts the nodes in their
// new order. Nodes emitted at one position keep the order of emission. Before position nodes() means at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/builder.h"
#include "ir/unique_names.h"

namespace snug {

class SectionEditor {
 public:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  // `states` and `section` must outlive the editor; states may be appended to while it lives.
  SectionEditor(const std::vector<State>& states, Section& section);
  // For edits that read and write no state.
  explicit SectionEditor(Section& section);

  // ---- queries; insertions count after apply()
  // Answers are computed when first asked for and follow the changes below; code that changes a node directly must do so before
  // asking. An erased node reads nothing, but still makes what it made.
  std::size_t nodes() const { return section_.nodes.size(); }
  Node& node(std::size_t at) { return section_.nodes[at]; }
  Value& value(ValueId id) { return section_.value(id); }
  const Value& value(ValueId id) const { return section_.value(id); }
  StateId state_of(ValueId id) const { return section_.value(id).state; }
  // The node that makes the value; kNobody for a state's first version and for pending insertions.
  std::size_t maker(ValueId id);
  // The nodes that read it, ascending, one entry per operand; a value made by a pending insertion has none.
  const std::vector<std::size_t>& readers(ValueId id);
  // The last node that reads or makes the value; kNobody when none does.
  std::size_t last_use(ValueId id);
  // The value whose bytes it lies in: itself, unless it is a view.
  ValueId root(ValueId id);
  // The last node that writes the state; kNobody when none does.
  std::size_t last_writer(StateId state);

  // ---- changes
  // The newest version of the state that the section has.
  ValueId read(StateId state) { return builder_.read(state); }
  std::vector<ValueId> emit_before(std::size_t at, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                                   const EmitOptions& options);
  std::vector<ValueId> emit_behind(std::size_t at, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                                   const EmitOptions& options);
  void insert_before(std::size_t at, Node node);
  // Emits a node that replaces the one at `at`.
  std::vector<ValueId> emit_instead(std::size_t at, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                                    const EmitOptions& options);
  void erase(std::size_t at);
  // Lets the nodes from `from` on read `with` instead of `id`.
  void replace_uses(ValueId id, ValueId with, std::size_t from);
  // Lets the node read one more value, as its last input.
  void add_input(std::size_t at, ValueId id);
  // Lets the node make another value, which must exist.
  void set_output(std::size_t at, std::size_t output, ValueId id);
  // A new value, its name made unique.
  ValueId add_value(Value value);
  // The node in phase `recompute`, with the original's inputs and new values, named after the old ones, as outputs. It is not
  // inserted. If the original has a kernel, the clone has the same, with its own workspace.
  Node clone(const Node& original);

  // Applies all changes. Positions are those of the new list from then on.
  void apply();

 private:
  enum class Beside : std::uint8_t { before, instead, behind };
  struct Insertion {
    std::size_t at;
    Beside beside;
    Node node;
  };
  std::vector<ValueId> emit(std::size_t at, Beside beside, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                            const EmitOptions& options);
  void find_makers();
  void find_readers();
  void note_reader(ValueId id, std::size_t at);
  bool is_erased(std::size_t at) const { return !erased_.empty() && erased_[at]; }

  Section& section_;
  SectionBuilder builder_;
  // Empty until first asked for: a search edits thousands of programs, most of them without a query.
  std::vector<std::size_t> maker_;                 // by value
  std::vector<ValueId> root_;                      // by value
  std::vector<std::size_t> last_writer_;           // by state
  std::vector<std::vector<std::size_t>> readers_;  // by value
  std::vector<Insertion> pending_;
  std::vector<bool> erased_;  // by node; empty: none
};

}  // namespace snug
