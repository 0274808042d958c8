#include "conformance/backend_conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "backends/reference/reference.h"
#include "base/error.h"
#include "conformance/stored_values.h"
#include "ir/builder.h"
#include "ir/verify.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "passes/select_kernels.h"
#include "plan/compile.h"
#include "runtime/executor.h"

namespace snug::conformance {

namespace {

using Kind = OperandSpec::Kind;

// An operand's type when reals are stored as `dtype`.
Type type_of(const OperandSpec& spec, DType dtype) {
  if (spec.kind == Kind::scalars) return ops::scalars_type();
  Type type{.dtype = dtype, .shape = spec.shape};
  if (spec.shape.rank() == 4 && !spec.row_major) type.layout = Layout::channels_last();
  switch (spec.kind) {
    case Kind::statistic:
      type.dtype = ops::statistics_dtype(dtype);
      break;
    case Kind::labels:
      type.dtype = DType::i32;
      break;
    case Kind::bytes:
      type.dtype = DType::u8;
      break;
    case Kind::bits:
      type.dtype = DType::bit;
      break;
    case Kind::argmax:
      type.dtype = spec.high > 16 ? DType::u8 : DType::u4;
      break;
    case Kind::wide:
      type.dtype = DType::f64;
      break;
    case Kind::single:
      type.dtype = DType::f32;
      break;
    case Kind::half:
      type.dtype = DType::f16;
      break;
    case Kind::real:
    case Kind::scalars:
      break;
  }
  return type;
}

// An operand's numbers in logical order, as they are once stored.
struct Values {
  std::vector<double> numbers;
  std::optional<Scalars> scalars;
};

// splitmix64, in [0, 1).
double uniform(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

Values values_of(const OperandSpec& spec, DType dtype, std::uint64_t seed) {
  if (spec.kind == Kind::scalars) return {.numbers = {}, .scalars = spec.scalars};
  const DType stored = type_of(spec, dtype).dtype;
  const bool whole = !is_floating(stored);
  Values values;
  if (!spec.numbers.empty()) {
    for (const double number : spec.numbers) values.numbers.push_back(whole ? number : rounded_to(stored, number));
    return values;
  }
  for (std::int64_t i = 0; i < spec.shape.elements(); ++i) {
    const double value = spec.low + (spec.high - spec.low) * uniform(seed);
    values.numbers.push_back(whole ? std::floor(value) : rounded_to(stored, value));
  }
  return values;
}

std::vector<std::byte> bytes_of(const Type& type, const Values& values) {
  if (!values.scalars) return encode(type, values.numbers);
  std::vector<std::byte> bytes(sizeof(Scalars));
  std::memcpy(bytes.data(), &*values.scalars, bytes.size());
  return bytes;
}

// Output `output` is the next version of input `input`.
struct InPlace {
  std::size_t output, input;
};

constexpr std::byte kPoison{0xFF};  // NaN as a real number

using Spaces = std::vector<MemorySpace>;  // by input; those not listed lie on the device

// A program of one node, all of whose operands are states, and an executor for it.
class OneNode {
 public:
  OneNode(const Backend& backend, const OpDef& op, const Attributes& attributes, std::vector<Type> inputs,
          const std::vector<InPlace>& in_place, const Spaces& spaces = {})
      : outputs_(infer_types(op, {inputs, attributes})), in_place_(in_place), inputs_(std::move(inputs)) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const MemorySpace space = i < spaces.size() ? spaces[i] : MemorySpace::device;
      input_states_.push_back(add_state(fmt::format("in{}", i), inputs_[i], space));
    }
    const MemorySpace output_space = op.output_space == nullptr ? MemorySpace::device : op.output_space(attributes);
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const auto shared = std::find_if(in_place.begin(), in_place.end(), [&](const InPlace& p) { return p.output == o; });
      output_states_.push_back(shared == in_place.end() ? add_state(fmt::format("out{}", o), outputs_[o], output_space)
                                                        : input_states_[shared->input]);
    }
    program_.name = "case";
    program_.batch = program_.microbatch = 1;
    Section section{.kind = SectionKind::micro, .values = {}, .nodes = {}};
    SectionBuilder builder(program_.states, section);
    std::vector<ValueId> reads;
    for (const StateId state : input_states_) reads.push_back(builder.read(state));
    builder.emit(op, reads, attributes, {.layer = "case", .writes = output_states_});
    program_.sections.push_back(std::move(section));
    verify(program_, "as a case");
    plan_ = place(select_kernels(std::move(program_), {.backend = backend}));
    executor_ = std::make_unique<Executor>(plan_, backend);
  }

  const std::string& kernel() const { return plan_.program.sections.front().nodes.front().kernel; }
  const std::vector<Type>& output_types() const { return outputs_; }

  // The outputs' bytes; `complaints` gathers what else was written.
  std::vector<std::vector<std::byte>> run(const std::vector<Values>& values, std::vector<std::string>& complaints) {
    Arena& arena = executor_->arena();
    arena.fill_from(Bytes(0), Arena::Canary::plain);
    for (std::size_t i = 0; i < inputs_.size(); ++i) executor_->write(input_states_[i], bytes_of(inputs_[i], values[i]));
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (!is_in_place(o)) executor_->write(output_states_[o], std::vector<std::byte>(bytes(outputs_[o]), kPoison));
    }
    const std::vector<std::byte> before = snapshot();
    executor_->run(SectionKind::micro);
    const std::vector<std::byte> after = snapshot();
    for (const MemorySpace space : kMemorySpaces) {
      if (plan_.in(space).planned_peak_bytes > Bytes(0) && !executor_->arena(space).margins_untouched())
        complaints.emplace_back("wrote outside the arena");
    }
    check_the_rest(before, after, complaints);

    std::vector<std::vector<std::byte>> results;
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      results.emplace_back(bytes(outputs_[o]));
      executor_->read(output_states_[o], results.back());
    }
    return results;
  }

 private:
  StateId add_state(std::string name, const Type& type, MemorySpace space) {
    program_.states.push_back({.name = std::move(name), .type = type, .role = Role::input, .space = space});
    return StateId(program_.states.size() - 1);
  }

  static std::size_t bytes(const Type& type) { return static_cast<std::size_t>(type.bytes().count()); }

  bool is_in_place(std::size_t output) const {
    return std::any_of(in_place_.begin(), in_place_.end(), [&](const InPlace& p) { return p.output == output; });
  }

  // Everything on the device but the workspace, alignment gaps included.
  std::vector<std::byte> snapshot() const {
    const std::int64_t end = std::min(plan_.persistent_bytes.count(), plan_.planned_peak_bytes.count());
    std::vector<std::byte> copy(static_cast<std::size_t>(end));
    executor_->arena().read(Bytes(0), copy);
    return copy;
  }

  void check_the_rest(const std::vector<std::byte>& before, const std::vector<std::byte>& after,
                      std::vector<std::string>& complaints) const {
    std::vector<bool> may_change(before.size(), false);
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (plan_.program.state(output_states_[o]).space != MemorySpace::device) continue;
      const auto begin = static_cast<std::size_t>(plan_.state_offsets[output_states_[o].index()].count());
      std::fill_n(may_change.begin() + static_cast<std::ptrdiff_t>(begin), bytes(outputs_[o]), true);
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (may_change[i] || before[i] == after[i]) continue;
      complaints.push_back(fmt::format("wrote byte {}, which is not its own ({})", i, owner_of(i)));
      return;
    }
  }

  std::string owner_of(std::size_t byte) const {
    for (std::size_t s = 0; s < plan_.program.states.size(); ++s) {
      if (plan_.program.states[s].space != MemorySpace::device) continue;
      const auto begin = static_cast<std::size_t>(plan_.state_offsets[s].count());
      if (byte >= begin && byte < begin + bytes(plan_.program.states[s].type)) return plan_.program.states[s].name;
    }
    return "a gap";
  }

  Program program_;  // until it is placed
  std::vector<Type> outputs_;
  std::vector<InPlace> in_place_;
  std::vector<Type> inputs_;
  std::vector<StateId> input_states_, output_states_;
  Plan plan_;
  std::unique_ptr<Executor> executor_;
};

Attributes attributes_for(const OpCase& test, DType dtype) {
  Attributes attributes = test.attributes;
  if (test.op == &ops::unpack) attributes.set("dtype", static_cast<std::int64_t>(dtype));
  if (test.op == &ops::image_input) attributes.set("bits", std::int64_t{bits_per_element(dtype)});
  if (test.op == &ops::image_input && dtype == DType::bf16) attributes.set("bfloat", std::int64_t{1});
  return attributes;
}

bool is_real(DType dtype) { return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// Two roundings of the stored type, and the error of summing in f32.
double allowed_error(DType stored, double expected, const OpCase& test) {
  if (!is_real(stored)) return 0;
  const double unit = stored == DType::f16 ? 0x1p-11 : stored == DType::bf16 ? 0x1p-8 : 0x1p-24;
  const double smallest = stored == DType::f16 ? 0x1p-24 : 0;  // between neighbors near zero
  return 2 * unit * std::abs(expected) + unit * test.rounded_on_the_way + 0x1p-24 * test.terms + smallest;
}

class Comparer {
 public:
  Comparer(const Backend& backend, const OpCase& test, DType dtype)
      : backend_(backend), test_(test), attributes_(attributes_for(test, dtype)) {
    std::uint64_t seed = std::hash<std::string>{}(test.name);
    for (const OperandSpec& spec : test.operands) {
      types_.push_back(type_of(spec, dtype));
      values_.push_back(values_of(spec, dtype, ++seed));
      spaces_.push_back(spec.on_host ? MemorySpace::host : MemorySpace::device);
    }
  }

  Comparison run() {
    if (chosen(attributes_, types_, &result_.refusal) == nullptr) return result_;
    const auto expected = reference();
    OneNode node(backend_, *test_.op, attributes_, types_, {}, spaces_);
    result_.kernel = node.kernel();
    const auto plain = run_repeatedly(node, values_, "");
    for (std::size_t o = 0; o < plain.size(); ++o) check_values(node.output_types()[o], plain[o], expected[o], o);
    check_in_place(node.output_types(), plain);
    check_accumulation(node.output_types(), plain);
    return result_;
  }

 private:
  // The kernel that takes the call; nullptr, and why, when none does.
  const KernelDef* chosen(const Attributes& attributes, const std::vector<Type>& inputs, std::string* why) const {
    const std::vector<Type> outputs = infer_types(*test_.op, {inputs, attributes});
    Accept accept;
    std::vector<std::string> refusals;
    const KernelQuery query{.op = *test_.op,
                            .attributes = attributes,
                            .inputs = inputs,
                            .outputs = outputs,
                            .threads = backend_.threads,
                            .device = backend_.device.get()};
    const KernelDef* kernel = backend_.choose(query, accept, &refusals);
    if (kernel == nullptr && why != nullptr) *why = refusals.empty() ? "no kernel for this op" : refusals.back();
    return kernel;
  }

  // The same numbers, in double.
  std::vector<std::vector<double>> reference() {
    static const Backend reference_backend = backends::reference_backend(2);
    std::vector<Type> types;
    for (const OperandSpec& spec : test_.operands) types.push_back(type_of(spec, DType::f64));
    OneNode node(reference_backend, *test_.op, attributes_for(test_, DType::f64), types, {}, spaces_);
    std::vector<std::string> complaints;
    const auto outputs = node.run(values_, complaints);
    SNUG_CHECK(complaints.empty(), "the reference itself: {}", complaints.front());
    std::vector<std::vector<double>> decoded;
    for (std::size_t o = 0; o < outputs.size(); ++o) decoded.push_back(decode(node.output_types()[o], outputs[o]));
    return decoded;
  }

  std::vector<std::vector<std::byte>> run_repeatedly(OneNode& node, const std::vector<Values>& values, const std::string& how) {
    std::vector<std::string> complaints;
    const auto first = node.run(values, complaints);
    for (int repeat = 0; repeat < 2; ++repeat) {
      if (node.run(values, complaints) != first) complaints.emplace_back("gives other bits when it runs again");
    }
    for (const std::string& complaint : complaints) complain(how + complaint);
    return first;
  }

  void complain(std::string text) {
    if (result_.complaints.size() < 5) result_.complaints.push_back(std::move(text));
  }

  void check_values(const Type& type, const std::vector<std::byte>& bytes, const std::vector<double>& expected,
                    std::size_t output) {
    const std::vector<double> got = decode(type, bytes);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
      const double error = std::abs(got[i] - expected[i]);
      const double allowed = allowed_error(type.dtype, expected[i], test_);
      if (allowed > 0 && error / allowed > result_.worst) result_.worst = error / allowed;
      // Written so that a NaN, an element that nobody wrote, is an error too.
      if (!(error <= allowed)) {
        complain(fmt::format("output {} element {} is {}, not {} (off by {:.3g}, allowed {:.3g})", output, i, got[i], expected[i],
                             error, allowed));
        return;
      }
    }
  }

  void check_in_place(const std::vector<Type>& outputs, const std::vector<std::vector<std::byte>>& plain) {
    for (const InPlacePromise& promise : test_.op->in_place) {
      if (promise.output >= outputs.size() || promise.input >= types_.size()) continue;
      if (outputs[promise.output] != types_[promise.input]) continue;
      const bool crosses = test_.op->output_space != nullptr;
      if (crosses && test_.op->output_space(attributes_) != spaces_[promise.input]) continue;
      OneNode node(backend_, *test_.op, attributes_, types_, {{promise.output, promise.input}}, spaces_);
      const std::string how = fmt::format("in place of input {}: ", promise.input);
      if (run_repeatedly(node, values_, how) != plain) complain(how + "gives other bits");
    }
  }

  void check_accumulation(const std::vector<Type>& outputs, const std::vector<std::vector<std::byte>>& plain) {
    if (!test_.op->may_accumulate) return;
    Attributes attributes = attributes_;
    attributes.set(kAccumulate, std::int64_t{1});
    std::vector<Type> types = types_;
    types.push_back(outputs[0]);
    // Plans add in place only where the same kernel does both.
    const KernelDef* kernel = chosen(attributes, types, nullptr);
    if (kernel == nullptr || kernel != chosen(attributes_, types_, nullptr)) return;
    result_.accumulates = true;
    std::vector<Values> values = values_;
    values.push_back(values_of({.shape = outputs[0].shape}, outputs[0].dtype, 77));
    // Rounded to the stored type before and after the addition, like a node of its own.
    std::vector<double> sums = decode(outputs[0], plain[0]);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values.back().numbers[i];
    const std::vector<std::byte> expected = encode(outputs[0], sums);
    const std::size_t last = types.size() - 1;
    std::vector<std::vector<InPlace>> forms{{}, {{0, last}}};
    for (const InPlacePromise& promise : test_.op->in_place) {
      if (promise.output == 0 && types[promise.input] == outputs[0]) forms.push_back({{0, promise.input}});
    }
    for (const std::vector<InPlace>& form : forms) {
      OneNode node(backend_, *test_.op, attributes, types, form);
      const std::string how = form.empty() ? "accumulating: " : fmt::format("accumulating in place of input {}: ", form[0].input);
      if (run_repeatedly(node, values, how)[0] != expected) complain(how + "other bits than adding afterwards");
    }
  }

  const Backend& backend_;
  const OpCase& test_;
  Attributes attributes_;
  std::vector<Type> types_;
  Spaces spaces_;
  std::vector<Values> values_;
  Comparison result_;
};

}  // namespace

Comparison compare(const Backend& backend, const OpCase& test, DType dtype) {
  try {
    return Comparer(backend, test, dtype).run();
  } catch (const std::exception& error) {
    return {.refusal = {}, .kernel = "?", .complaints = {error.what()}};
  }
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  for (const auto list : {product_cases, norm_cases, other_cases, pack_cases, update_cases, sparse_cases, sequence_cases,
                          attention_cases, dynamic_conv_cases}) {
    for (OpCase& test : list()) cases.push_back(std::move(test));
  }
  return cases;
}

}  // namespace snug::conformance
