#include "passes/compress_activations.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "ir/example_rows.h"
#include "ir/section_editor.h"
#include "ops/ops.h"
#include "passes/checkpoint/clonable.h"
#include "passes/checkpoint/forward_chain.h"

namespace snug {

namespace {

// Below this the two buffers of a packed value, their alignment and the two calls cost more than they save.
constexpr std::int64_t kLeastElements = 1024;

class Compressor {
 public:
  Compressor(const Program& program, Section& section, int bits)
      : section_(section),
        bits_(bits),
        end_(end_of_forward(section)),
        is_small_(find_forward_pass(section).is_small),
        uses_(section.values.size()),
        root_(section.values.size()),
        may_clone_(find_clonable_nodes(section, end_)),
        example_rows_(program.states, section, program.examples_of(section)),
        editor_(program.states, section) {
    SNUG_CHECK(program.scalars.valid(), "the program '{}' has no scalars to draw by", program.name);
    scalars_ = editor_.read(program.scalars);
  }

  void run() {
    find_uses();
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      if (may_pack(ValueId(v))) pack(ValueId(v));
    }
    for (std::size_t i = end_; i < section_.nodes.size(); ++i) {
      for (ValueId& input : section_.nodes[i].inputs) read_unpacked(input, section_.nodes[i], i);
    }
    editor_.apply();
  }

 private:
  // Of a value and all views of it.
  struct Uses {
    std::size_t maker = 0;
    std::string layer;             // its maker's
    bool is_made = false;          // by a forward node, and no view
    std::size_t last_forward = 0;  // the last forward node that makes or reads it
    std::size_t first_behind = 0;  // the first node after forward that reads it
    bool is_read_behind = false;
    bool must_be_exact = false;  // a node after forward needs it exactly, and bits are not enough
    bool wants_values = false;   // some node after forward needs more than its signs
    bool wants_signs = false;
  };
  struct Packed {
    ValueId codes = ValueId::none(), ranges = ValueId::none(), signs = ValueId::none();
  };

  bool needs_exactly(const Node& node, std::size_t input) const { return ((node.op->exact_inputs >> input) & 1U) != 0; }
  // A ReLU's gradient can use sign bits instead of its output.
  bool takes_signs(const Node& node, std::size_t input) const {
    const SignsOnly& signs = node.op->signs_only;
    return signs.with_bits != nullptr && signs.input == input && root_[node.inputs[input].index()] == node.inputs[input];
  }

  void find_uses() {
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = ValueId(v);
    for (std::size_t i = 0; i < section_.nodes.size(); ++i) {
      const Node& node = section_.nodes[i];
      for (std::size_t k = 0; k < node.inputs.size(); ++k) use(node, k, i);
      if (i < end_ && may_clone_[i] && comes_from_states(node)) made_again_[node.outputs[0]] = node;
      for (const ValueId output : node.outputs) {
        if (i >= end_ || section_.value(output).is_state()) continue;
        if (node.op->is_view && !section_.value(node.inputs[0]).is_state()) {
          root_[output.index()] = root_[node.inputs[0].index()];
          made_again_[output] = node;
          continue;
        }
        Uses& uses = uses_[output.index()];
        uses.maker = uses.last_forward = i;
        uses.is_made = true;
        uses.layer = node.layer;
      }
    }
  }

  // Images are recomputed from their bytes: exactly, and without keeping anything.
  bool comes_from_states(const Node& node) const {
    return node.op->cheap_to_recompute && node.outputs.size() == 1 &&
           section_.value(node.outputs[0]).type.elements() >= kLeastElements &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return section_.value(id).is_state(); });
  }

  void use(const Node& node, std::size_t input, std::size_t at) {
    Uses& uses = uses_[root_[node.inputs[input].index()].index()];
    if (at < end_) {
      uses.last_forward = at;
      return;
    }
    if (!uses.is_read_behind) uses.first_behind = at;
    uses.is_read_behind = true;
    const bool only_signs = takes_signs(node, input);
    uses.wants_signs = uses.wants_signs || only_signs;
    uses.wants_values = uses.wants_values || !only_signs;
    uses.must_be_exact = uses.must_be_exact || (needs_exactly(node, input) && !only_signs && node.phase == Phase::backward);
  }

  // For some time the value is kept and not used.
  static bool waits(const Uses& uses) { return uses.is_read_behind && uses.first_behind > uses.last_forward + 1; }

  bool may_pack(ValueId id) const {
    const Value& value = section_.value(id);
    const Uses& uses = uses_[id.index()];
    const DType dtype = value.type.dtype;
    const bool is_real = dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
    return uses.is_made && !made_again_.contains(id) && waits(uses) && uses.wants_values && !uses.must_be_exact && is_real &&
           value.role == Role::activation && value.space == MemorySpace::device &&
           value.type.layout.kind != Layout::Kind::opaque && value.type.elements() >= kLeastElements && !is_small_[id.index()];
  }

  // Whether the last forward use could take the value's bytes if that were its end.
  bool may_die_in_place(const Node& last, ValueId id) const {
    const Type& type = section_.value(id).type;
    for (std::size_t o = 0; o < last.outputs.size(); ++o) {
      const Value& taker = section_.value(last.outputs[o]);
      for (std::size_t i = 0; i < last.inputs.size(); ++i) {
        if (root_[last.inputs[i].index()] == id && promises_in_place(last, o, i) && !taker.is_state() &&
            taker.type.bytes() == type.bytes() && taker.type.layout == type.layout) {
          return true;
        }
      }
    }
    return false;
  }

  void pack(ValueId id) {
    const Uses& uses = uses_[id.index()];
    const std::string name = section_.value(id).name;
    const bool before = uses.last_forward != uses.maker && may_die_in_place(section_.nodes[uses.last_forward], id);
    const auto emit = [&](const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, const std::string& called) {
      const EmitOptions options{.name = called, .layer = uses.layer, .role = Role::activation, .phase = Phase::forward};
      return before ? editor_.emit_before(uses.last_forward, op, std::move(inputs), std::move(attributes), options)
                    : editor_.emit_behind(uses.last_forward, op, std::move(inputs), std::move(attributes), options);
    };
    Packed packed;
    if (uses.wants_signs) packed.signs = emit(ops::sign_bits, {id}, {}, name + ".sign").front();
    // Keyed by what is packed, so that packing other values changes no draw of this one.
    Attributes attributes{{"bits", std::int64_t{bits_}}, {"key", static_cast<std::int64_t>(uses.maker)}};
    // What is computed from a whole microbatch (statistics) differs in each, and so do its draws.
    set_rows_per_example(attributes, example_rows_.of(id).value_or(1));
    const std::vector<ValueId> outputs = emit(ops::pack, {id, scalars_}, std::move(attributes), name);
    packed.codes = outputs[0];
    packed.ranges = outputs[1];
    packed_[id] = packed;
  }

  // Lets the node at `at`, after forward, read the unpacked value.
  void read_unpacked(ValueId& input, Node& node, std::size_t at) {
    if (input.index() >= root_.size()) return;
    const ValueId root = root_[input.index()];
    const auto found = packed_.find(root);
    if (found == packed_.end() && !(made_again_.contains(root) && waits(uses_[root.index()]))) return;
    if (found != packed_.end() && takes_signs(node, static_cast<std::size_t>(&input - node.inputs.data()))) {
      node.op = node.op->signs_only.with_bits;
      input = found->second.signs;
      return;
    }
    input = brought_back(input, at);
  }

  // The value unpacked, or recomputed from states or as a view of what was unpacked.
  ValueId brought_back(ValueId id, std::size_t at) {
    const auto [entry, is_new] = back_.try_emplace(id, ValueId::none());
    if (!is_new) return entry->second;
    const auto original = made_again_.find(id);
    ValueId back = ValueId::none();
    if (original == made_again_.end()) {
      back = unpack(id, packed_.at(id), at);
    } else {
      Node clone = editor_.clone(original->second);
      if (root_[id.index()] != id) clone.inputs[0] = brought_back(original->second.inputs[0], at);
      back = clone.outputs[0];
      editor_.insert_before(at, std::move(clone));
    }
    return back_[id] = back;
  }

  ValueId unpack(ValueId id, const Packed& packed, std::size_t at) {
    const Type type = section_.value(id).type;
    const auto dims = type.shape.dims();
    const Attributes attributes{{"bits", std::int64_t{bits_}},
                                {"dtype", static_cast<std::int64_t>(type.dtype)},
                                {"channels_last", std::int64_t{type.layout.kind == Layout::Kind::channels_last ? 1 : 0}},
                                {"input_shape", std::vector<std::int64_t>(dims.begin(), dims.end())}};
    return editor_
        .emit_before(at, ops::unpack, {packed.codes, packed.ranges}, attributes,
                     {.name = section_.value(id).name + ".unpacked",
                      .layer = uses_[id.index()].layer,
                      .role = Role::activation,
                      .phase = Phase::recompute})
        .front();
  }

  Section& section_;
  int bits_;
  std::size_t end_;  // of forward
  std::vector<bool> is_small_;
  std::vector<Uses> uses_;                        // by value; used for roots alone
  std::vector<ValueId> root_;                     // by value: itself, or what it is a view of
  std::vector<bool> may_clone_;                   // by forward node
  std::unordered_map<ValueId, Node> made_again_;  // what makes views and what comes from states, by their outputs
  ExampleRows example_rows_;
  SectionEditor editor_;
  ValueId scalars_ = ValueId::none();
  std::unordered_map<ValueId, Packed> packed_;
  std::unordered_map<ValueId, ValueId> back_;  // what replaces a value after forward
};

}  // namespace

Program compress_activations(Program program, const PassContext& context) {
  const auto bits = static_cast<int>(context.methods.compress_bits.value_or(0));
  if (bits != 8 && bits != 4 && bits != 2) throw_user_error("activations are kept in 8, 4 or 2 bits, not in {}", bits);
  for (Section& section : program.sections) {
    if (section.kind == SectionKind::micro) Compressor(program, section, bits).run();
  }
  return program;
}

}  // namespace snug
