// An op as data. One file in ops/ says everything about one op by filling in an OpDef; passes, the verifier and the text form
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
};

// An op that alone reads this op's output 0 may become an attribute of this op.
struct Absorption {
  const OpDef* op;
  std::string_view attribute;  // set to 1
  bool (*allows)(const NodeTypes& absorbing) = nullptr;
};

// Of this input only the sign of each element matters: `with_bits` does the same from sign bits in its place.
struct SignsOnly {
  std::uint8_t input = 0;
  const OpDef* with_bits = nullptr;
};

// A rule that is linear in the gradient may be fed with parts of it as soon as they are made. Its states then hold the gradient,
// and the update only takes the step:
//   decay(state, weight, scalars) -> state      before the first part: what the rule does to its state and adds of the weight
//   add(state, part, scalars) -> state          where results are rounded stochastically; else a plain sum
//   step(weight, scalars, state) -> weight
struct FedEarly {
  const OpDef* decay = nullptr;
  const OpDef* add = nullptr;
  const OpDef* step = nullptr;
  // Why a node with these constants cannot be fed so, as the end of a sentence; empty when it can.
  std::string_view (*objection)(const Attributes&) = nullptr;
};

// Of a loss: what a run reports of it, and what its inputs are.
struct LossFacts {
  // What Metrics::loss and Metrics::score / Metrics::weight, a share, are called; the second is empty where nothing is counted.
  std::array<std::string_view, 2> metrics = {"loss", {}};
  std::uint8_t ranks_by = 0;  // which of the two tells better weights from worse ones
  bool higher_is_better = false;
  std::string_view unit = "examples";  // of throughput: what one row of the loss is
  int labels = -1;                     // the input with the numbers of classes, as many as input 0 has columns; -1: none
  int weights = -1;                    // the input with a weight for each row, which may be left out; -1: none
};

// An op that moves a parameter: op(weight, gradient, scalars, states..., updates?, gradient_norm?) -> weight, gradient (cleared),
// states...
struct UpdateFacts {
  std::size_t (*states)(const Attributes&) = nullptr;  // how many of them there are
  bool reads_updates = false;                          // the program's count of updates
  FedEarly fed_early = {};                             // without ops: it cannot be fed so, for the objection's reason
};

// Whether an op stores a value in few bits, almost as it was, or brings it back.
enum class Packing : std::uint8_t { none, packs, unpacks };

struct OpDef {
  std::string_view name;
  // Types of the outputs; UserError naming the offending shape or attribute when the operands do not go together.
  std::vector<Type> (*infer)(const OpCall&) = nullptr;
  // Multiply-add counts as two.
  std::int64_t (*flops)(const NodeTypes&, const Attributes&) = nullptr;
  std::span<const GradientRecipe> gradients = {};  // empty: no gradient flows through
  std::span<const InPlacePromise> in_place = {};
  std::span<const std::string_view> outputs = {};  // suffixes for the names of further outputs
  bool is_view = false;                            // output 0 is input 0 under another shape: the same bytes, never written
  bool may_recompute = true;                       // false: running it twice would count something twice
  bool cheap_to_recompute = false;                 // no matrix product: a pass over memory
  // Bit i: almost the value of input i is not good enough, because of a comparison (its sign, the largest of a window) or an
  // exponential.
  std::uint32_t exact_inputs = 0;
  bool may_accumulate = false;  // a kernel may add output 0 to a value given as one more, last, input
  // The memory that the outputs lie in, for an op whose inputs may lie in any. Nothing: all operands lie on the device.
  MemorySpace (*output_space)(const Attributes&) = nullptr;

  // Facts that passes ask for.
  bool normalizes = false;        // output 0 is input 0, shifted and scaled by statistics that are far smaller
  bool pointwise = false;         // an element of output 0 comes from the element of input 0 at its place
  bool is_sum = false;            // output 0 is input 0 plus input 1, to the same bits in either order
  bool joins_branches = false;    // what is computed in parallel meets here, as at the end of a residual block
  bool depends_on_batch = false;  // of an example: its result depends on the others in its microbatch
  bool prepares_data = false;     // its attributes are the data's (normalization, augmentation), not the model's
  // Bit i: input i stays in 32 bits where the values around it are stored in 16: parameters and statistics of normalization.
  std::uint32_t wide_inputs = 0;
  // Of an op whose result's type stands in its attributes: lets it make `dtype`.
  void (*set_result_dtype)(Attributes& attributes, DType dtype) = nullptr;
  int weight_operand = -1;  // the input that kernels may want in a layout of their own; -1: none
  std::span<const Absorption> absorbs = {};
  SignsOnly signs_only = {};
  Packing packing = Packing::none;
  const LossFacts* loss = nullptr;      // of a loss: backward starts here, and the recipe needs no gradient of its output
  const UpdateFacts* update = nullptr;  // of an op that moves a parameter
  const OpDef* stands_for = nullptr;    // FedEarly::decay: the update op whose constants it has
  // Moves the elements of a parameter, output 0, to other places. What an update keeps beside the parameter begins again: one
  // state of the parameter's type is cleared by the op, as one more input and output, others by nodes behind it.
  bool moves_elements = false;
  bool is_early_step = false;       // FedEarly::step
  bool measures_gradients = false;  // looks at all gradients before any of them counts
  bool is_auxiliary = false;        // what methods put beside a model's own nodes: other forms of a value, guards
};

inline constexpr std::string_view kAccumulate = "accumulate";  // attribute, 1: output 0 = last input + result

// Attribute of a forward node before differentiation: which of its op's gradient recipes it takes; the first where it is absent.
inline constexpr std::string_view kRecipe = "recipe";

bool accumulates(const Attributes& attributes);

// Types of the outputs, the accumulator understood; messages of UserErrors begin with the op's name.
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

  // A kept input or output; InternalError when the recipe did not say that it keeps it.
  ValueId input(std::size_t i) const;
  ValueId output(std::size_t i) const;
  ValueId extra() const;
  // Shapes are always known, kept or not.
  const Type& input_type(std::size_t i) const;

  ValueId output_gradient(std::size_t i) const;
  bool wants(std::size_t input) const { return wanted_[input]; }
  void set_gradient(std::size_t input, ValueId gradient) { gradients_[input] = gradient; }
  const std::vector<ValueId>& gradients() const { return gradients_; }

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
};

}  // namespace snug
