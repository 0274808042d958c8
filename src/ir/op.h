// An op as data. One file in ops/ defines everything about an op by filling in an OpDef; passes, the verifier and the text form
// read it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace snug {

class GradientContext;
class SectionBuilder;

// The operands a node is to be made from, before it exists.
struct OpCall {
  std::span<const Type> inputs;
  const Attributes& attributes;
};

// Output `output` may take the bytes of input `input` when that input dies there: the kernel reads each element before it writes
// it.
struct InPlacePromise {
  std::uint8_t output;
  std::uint8_t input;
};

// One way to differentiate an op: what must be kept from the forward pass, and how backward is built from that and nothing else.
// Persistent inputs (parameters, scalars, staging) cost nothing to keep and may always be read.
struct GradientRecipe {
  std::string_view name;
  std::uint32_t keeps_inputs = 0;   // bit i: input i
  std::uint32_t keeps_outputs = 0;  // bit i: output i
  // Emitted right after the op in the forward pass; its result is kept instead of a larger value (sign bits, argmax).
  ValueId (*make_extra)(SectionBuilder&, const Node& forward) = nullptr;
  void (*build)(GradientContext&) = nullptr;
  // Backward does once more what the node did, so it takes longer than the first recipe: never chosen to save bytes alone.
  bool repeats_forward = false;
  // The node that `build` emits also makes the forward node's outputs, and stands in its place.
  bool makes_outputs = false;
};

// An op that alone reads this op's output 0 may become an attribute of this op.
struct Absorption {
  const OpDef* op;
  std::string_view attribute;  // set to 1
  bool (*allows)(const NodeTypes& absorbing) = nullptr;
};

// Of this input only the sign of each element matters: `with_bits` does the same with sign bits as that input.
struct SignsOnly {
  std::uint8_t input = 0;
  const OpDef* with_bits = nullptr;
};

// A rule that is linear in the gradient may be fed with parts of it as soon as they are made. Its states then hold the gradient,
// and the update only takes the step:
//   decay(state, weight, scalars) -> state      before the first part: what the rule does to its state, with weight decay
//   add(state, part, scalars) -> state          where results are rounded stochastically; else a plain sum
//   step(weight, scalars, state) -> weight
struct FedEarly {
  const OpDef* decay = nullptr;
  const OpDef* add = nullptr;
  const OpDef* step = nullptr;
  // Why a node with these constants cannot be fed early, as the end of a sentence; empty when it can.
  std::string_view (*objection)(const Attributes&) = nullptr;
};

// The op that does an op's work where the rows of an example come one at a time, as when a text is written token by token. What
// it needs of the rows before is in states, which it writes too:
//   step(the op's first inputs, states..., positions i32[rows]) -> output 0, states...
struct InSteps {
  const OpDef* op = nullptr;  // nullptr: the op does the same in steps and looks at no other row, or it objects
  std::size_t inputs = 1;
  std::span<const std::string_view> attributes = {};  // those that the step has too
  // The types of the states for examples of at most `context` rows; nullptr: there are none. Their names are those of the step's
  // further outputs (OpDef::outputs).
  std::vector<Type> (*states)(const NodeTypes& types, const Attributes& attributes, std::int64_t context) = nullptr;
  // Why such a node cannot go in steps, as the end of a sentence; empty when it can.
  std::string_view (*objection)(const NodeTypes& types, const Attributes& attributes) = nullptr;
};

// Of a loss: what a run reports about it, and what its inputs are.
struct LossFacts {
  // The names of Metrics::loss and of Metrics::score / Metrics::weight, a share; the second is empty where nothing is counted.
  std::array<std::string_view, 2> metrics = {"loss", {}};
  std::uint8_t ranks_by = 0;  // which of the two ranks weights
  bool higher_is_better = false;
  std::string_view unit = "examples";  // of throughput: what one row of the loss is
  int labels = -1;                     // the input with class numbers, from 0 on; -1: none
  int weights = -1;                    // the optional input with a weight for each row; -1: none
  // Where the number of classes is found: -1, input 0 has scores in its last dimension, one for each class; else the first
  // dimension of that input, a classifier's weight.
  int classifier = -1;
  const OpDef* makes_scores = nullptr;  // the scores are what this op makes of input 0 and the classifier's weight
  // A row whose label is no class does not count, as if its weight were 0; otherwise such a label is corrupt data.
  bool ignores_other_labels = false;

  // Whether input 0 is what the loss judges: a score for each class.
  bool has_scores() const { return labels >= 0 && classifier < 0; }
};

// An op that moves a parameter: op(weight, gradient, scalars, states..., updates?, gradient_norm?) -> weight, gradient (cleared),
// states...
struct UpdateFacts {
  // How many states there are, by the constants alone: what depends on the parameter's shape, UpdateRule::update_of writes there.
  std::size_t (*states)(const Attributes&) = nullptr;
  bool reads_updates = false;  // the program's count of updates
  FedEarly fed_early = {};     // without ops: it cannot be fed early, and the objection says why
};

// Whether an op packs a value into few bits (lossy), or unpacks it.
enum class Packing : std::uint8_t { none, packs, unpacks };

struct OpDef {
  std::string_view name;
  // Types of the outputs; UserError naming the offending shape or attribute when the operands do not go together.
  std::vector<Type> (*infer)(const OpCall&) = nullptr;
  // Multiply-add counts as two.
  std::int64_t (*flops)(const NodeTypes&, const Attributes&) = nullptr;
  std::span<const GradientRecipe> gradients = {};  // empty: no gradient flows through it
  std::span<const InPlacePromise> in_place = {};
  std::span<const std::string_view> outputs = {};  // suffixes for the names of further outputs
  bool is_view = false;                            // output 0 is input 0 with another shape: the same bytes, never written
  bool may_recompute = true;                       // false: running it twice would count something twice
  bool cheap_to_recompute = false;                 // no matrix product: a pass over memory
  // Bit i: an approximate value of input i is not good enough, because of a comparison (its sign, the largest of a window) or an
  // exponential.
  std::uint32_t exact_inputs = 0;
  bool may_accumulate = false;  // a kernel may add output 0 to a value given as an additional last input
  // The memory space of the outputs, for an op whose inputs may lie in any. nullptr: all operands lie on the device.
  MemorySpace (*output_space)(const Attributes&) = nullptr;

  // Facts that passes ask for.
  bool normalizes = false;        // output 0 is input 0, shifted and scaled by statistics that are far smaller
  bool pointwise = false;         // an element of output 0 depends only on the same element of input 0
  bool is_sum = false;            // output 0 is input 0 plus input 1, with the same bits in either order
  bool joins_branches = false;    // parallel branches meet here, as at the end of a residual block
  bool depends_on_batch = false;  // an example's result depends on the others in its microbatch
  bool prepares_data = false;     // its attributes are the data's (normalization, augmentation), not the model's
  // Bit i: input i stays in 32 bits where the values around it are stored in 16: parameters and statistics of normalization.
  std::uint32_t wide_inputs = 0;
  // Changes the attributes to those of evaluation, which draws no random numbers. nullptr: the same as in training.
  void (*for_evaluation)(Attributes& attributes) = nullptr;
  // Of an op whose attributes say its result's type: changes that to `dtype`.
  void (*set_result_dtype)(Attributes& attributes, DType dtype) = nullptr;
  int looks_up_in = -1;     // input 0 holds numbers of rows of this input; -1: it does not
  int weight_operand = -1;  // the input for which kernels may prefer their own layout; -1: none
  std::span<const Absorption> absorbs = {};
  SignsOnly signs_only = {};
  InSteps in_steps = {};
  Packing packing = Packing::none;
  const LossFacts* loss = nullptr;      // of a loss: backward starts here, and the recipe needs no gradient of its output
  const UpdateFacts* update = nullptr;  // of an op that moves a parameter
  const OpDef* stands_for = nullptr;    // of FedEarly::decay: the update op whose constants it has
  // Moves the elements of a parameter, output 0, to other places. What an update keeps beside the parameter is reset: one state
  // of the parameter's type by the op itself, as an additional input and output, others by nodes after it.
  bool moves_elements = false;
  bool is_early_step = false;       // of FedEarly::step
  bool measures_gradients = false;  // reads all gradients before any of them is applied
  bool is_auxiliary = false;        // what methods add to a model's own nodes: other forms of a value, guards
};

inline constexpr std::string_view kAccumulate = "accumulate";  // attribute, 1: output 0 = last input + result

// Attribute of a forward node before differentiation: which of its op's gradient recipes it uses; the first if absent.
inline constexpr std::string_view kRecipe = "recipe";

bool accumulates(const Attributes& attributes);

// Types of the outputs, the accumulator considered; messages of UserErrors begin with the op's name.
std::vector<Type> infer_types(const OpDef& op, const OpCall& call);

// The op's promise, or the accumulator's.
bool promises_in_place(const Node& node, std::size_t output, std::size_t input);

std::int64_t count_flops(const Section& section, const Node& node);

// Looks an op up by name; nullptr when there is none.
using OpLookup = const OpDef* (*)(std::string_view name);

// What a recipe's `build` sees.
class GradientContext {
 public:
  GradientContext(SectionBuilder& builder, const Node& forward, const GradientRecipe& recipe,
                  std::vector<ValueId> output_gradients, std::vector<bool> wanted, ValueId extra);

  SectionBuilder& builder() { return builder_; }
  const Attributes& attributes() const { return forward_.attributes; }
  std::size_t input_count() const { return forward_.inputs.size(); }

  // A kept input or output; InternalError when the recipe did not declare that it keeps it.
  ValueId input(std::size_t i) const;
  ValueId output(std::size_t i) const;
  ValueId extra() const;
  // Shapes are always known, kept or not.
  const Type& input_type(std::size_t i) const;

  ValueId output_gradient(std::size_t i) const;
  bool wants(std::size_t input) const { return wanted_[input]; }
  void set_gradient(std::size_t input, ValueId gradient) { gradients_[input] = gradient; }
  const std::vector<ValueId>& gradients() const { return gradients_; }

  // Of a recipe that makes the forward node's outputs: what takes the place of output `i`.
  void set_output(std::size_t i, ValueId value);
  const std::vector<ValueId>& made_outputs() const { return made_outputs_; }

  // Emits a backward node of one output.
  ValueId emit(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> emit_all(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});

 private:
  SectionBuilder& builder_;
  const Node& forward_;
  const GradientRecipe& recipe_;
  std::vector<ValueId> output_gradients_;
  std::vector<bool> wanted_;
  ValueId extra_;
  std::vector<ValueId> gradients_;
  std::vector<ValueId> made_outputs_;
};

}  // namespace snug
