// The rules that every reference kernel obeys, whatever it computes. run() also fails where anything but the outputs is written.
#include <algorithm>
#include <cmath>
#include <set>

#include "allocation_counter.h"
#include "base/error.h"
#include "cases.h"
#include "support/messages.h"

namespace snug::backends {
namespace {

void for_every_case(const std::function<void(const Case&)>& body) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Case& original : all_cases(dtype)) {
      for (unsigned layouts = 0; layouts < layout_choices(original); ++layouts) {
        const Case call = with_layouts(original, layouts);
        SCOPED_TRACE(call.name());
        body(call);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

std::vector<Tensor> run(const Case& call, const RunOptions& options = {}) {
  return backends::run(*call.op, call.inputs, call.attributes, options);
}

void expect_same_bytes(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].same_bytes(expected[i])) << "output " << i;
}

TEST(ReferenceKernels, EveryOpHasAKernelAndACase) {
  const Backend backend = reference_backend(1);
  std::set<std::string_view> covered;
  for (const Case& call : all_cases(DType::f32)) covered.insert(call.op->name);
  for (const OpDef* op : ops::all()) {
    const std::string name = "reference_" + std::string(op->name);
    const KernelDef* kernel = backend.find(name);
    ASSERT_NE(kernel, nullptr) << name;
    EXPECT_EQ(kernel->op, op->name);
    EXPECT_TRUE(covered.contains(op->name)) << op->name;
  }
  EXPECT_EQ(backend.kernels.size(), ops::all().size());
}

TEST(ReferenceKernels, AnyNumberOfThreadsGivesTheSameBits) {
  for_every_case([](const Case& call) {
    const auto alone = run(call, {.threads = 1});
    for (const int threads : {2, 3, 7}) expect_same_bytes(run(call, {.threads = threads}), alone);
  });
}

// Outputs are NaN before the kernel runs, and all operands are finite.
TEST(ReferenceKernels, EveryElementIsWritten) {
  for_every_case([](const Case& call) {
    for (const Tensor& output : run(call)) {
      for (std::int64_t i = 0; i < output.elements(); ++i) ASSERT_FALSE(std::isnan(output[i])) << "element " << i;
    }
  });
}

TEST(ReferenceKernels, LayoutsDoNotChangeTheBitsOfAnElement) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Case& original : all_cases(dtype)) {
      if (!original.any_layout) continue;
      SCOPED_TRACE(original.name());
      const auto expected = run(original);
      for (unsigned layouts = 0; layouts < layout_choices(original); ++layouts) {
        for (const bool channels_last : {false, true}) {
          const Case call = with_layouts(original, layouts);
          std::vector<Type> types = inferred_types(call);
          for (Type& type : types) type.layout = plain_layout(channels_last && type.shape.rank() == 4);
          const auto outputs = run(call, {.output_types = types});
          for (std::size_t i = 0; i < outputs.size(); ++i) ASSERT_EQ(outputs[i].logical(), expected[i].logical()) << call.name();
        }
      }
    }
  }
}

TEST(ReferenceKernels, OutputMayTakeTheBytesOfAPromisedInput) {
  int tried = 0;
  for_every_case([&](const Case& call) {
    const std::vector<Type> types = inferred_types(call);
    const auto expected = run(call);
    RunOptions all_at_once;
    for (const InPlacePromise& promise : call.op->in_place) {
      // A case may lack an optional operand (momentum, a sum so far), and only equal types can share.
      if (promise.output >= types.size() || promise.input >= call.inputs.size()) continue;
      if (types[promise.output] != call.inputs[promise.input].type()) continue;
      expect_same_bytes(run(call, {.in_place = {{promise.output, promise.input}}}), expected);
      const bool taken =
          std::ranges::any_of(all_at_once.in_place, [&](const auto& pair) { return pair.first == promise.output; });
      if (!taken) all_at_once.in_place.emplace_back(promise.output, promise.input);
      ++tried;
    }
    if (!all_at_once.in_place.empty()) expect_same_bytes(run(call, all_at_once), expected);
  });
  EXPECT_GT(tried, 100);
}

// The sum of two values of one dtype, rounded to it.
double add_in(DType dtype, double a, double b) {
  return dtype == DType::f32 ? double{static_cast<float>(a) + static_cast<float>(b)} : a + b;
}

TEST(ReferenceKernels, AccumulatingGivesTheBitsOfAddingAfterwards) {
  int tried = 0;
  for_every_case([&](const Case& call) {
    if (!call.op->may_accumulate) return;
    const auto plain = run(call);
    const Tensor accumulator = Tensor::random(plain[0].type(), 99);
    const Case summing = accumulating(call, accumulator);
    const std::size_t last = summing.inputs.size() - 1;
    const Tensor sum = run(summing)[0];
    for (std::int64_t i = 0; i < sum.elements(); ++i)
      ASSERT_EQ(sum[i], add_in(sum.type().dtype, accumulator[i], plain[0][i])) << i;
    EXPECT_TRUE(backends::run(ops::add, {accumulator, plain[0]})[0].same_bytes(sum));
    // The output in the accumulator's bytes, or in those of an input, which the addition must not disturb.
    EXPECT_TRUE(run(summing, {.in_place = {{0, last}}})[0].same_bytes(sum));
    for (const InPlacePromise& promise : call.op->in_place) {
      if (promise.output != 0 || call.inputs[promise.input].type() != sum.type()) continue;
      EXPECT_TRUE(run(summing, {.in_place = {{0, promise.input}}})[0].same_bytes(sum));
    }
    ++tried;
  });
  EXPECT_GT(tried, 50);
}

TEST(ReferenceKernels, AccumulatorMayHaveAnotherLayout) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor dy = Tensor::random({.dtype = dtype, .shape = {2, 3, 4, 5}}, 1), y = Tensor::random(dy.type(), 2);
    const Tensor accumulator = Tensor::random(dy.type(), 3);
    const Case call{&ops::relu_grad, {dy, y}};
    EXPECT_TRUE(run(accumulating(call, accumulator.with_layout(true)))[0].same_bytes(run(accumulating(call, accumulator))[0]));
  }
}

TEST(ReferenceKernels, RunDoesNotAllocate) {
  const Backend backend = reference_backend(2);
  for_every_case([&](const Case& call) {
    Case held = call;
    std::vector<Tensor> outputs;
    for (const Type& type : inferred_types(call)) outputs.emplace_back(type);
    std::vector<Operand> input_operands, output_operands;
    for (Tensor& input : held.inputs) input_operands.push_back(input.operand());
    for (Tensor& output : outputs) output_operands.push_back(output.operand());
    const KernelDef* kernel = backend.find("reference_" + std::string(call.op->name));
    const auto bound = kernel->bind(
        {.attributes = held.attributes, .inputs = input_operands, .outputs = output_operands, .workspace = {}, .threads = 2});
    const std::int64_t before = allocation_count();
    bound->run();
    EXPECT_EQ(allocation_count(), before);
  });
}

// The caller's attributes and operand lists die after binding; the scalar block is read at each run.
TEST(ReferenceKernels, BoundKernelKeepsItsOperandsAndReadsTheScalarsAnew) {
  Tensor x = Tensor::random({.dtype = DType::f64, .shape = {4, 8}}, 1), y(x.type());
  Tensor scalars = Tensor::scalars({.seed = 1, .step = 0});
  std::unique_ptr<BoundKernel> bound;
  {
    const Attributes attributes{{"probability", 0.5}, {"key", std::int64_t{1}}};
    const std::vector<Operand> inputs{x.operand(), scalars.operand()}, outputs{y.operand()};
    bound = reference_backend(1).find("reference_dropout")->bind({attributes, inputs, outputs, {}, 1});
  }
  bound->run();
  const std::vector<double> first = y.logical();
  bound->run();
  EXPECT_EQ(y.logical(), first);
  const Scalars next{.seed = 1, .step = 1};
  std::memcpy(scalars.data(), &next, sizeof next);
  bound->run();
  EXPECT_NE(y.logical(), first);
}

std::string refusal(const OpDef& op, const std::vector<Type>& inputs, const std::vector<Type>& outputs) {
  const Backend backend = reference_backend(1);
  Accept accept;
  std::vector<std::string> refusals;
  const Attributes attributes;
  const KernelDef* kernel = backend.choose({op, attributes, inputs, outputs, 1}, accept, &refusals);
  return kernel != nullptr || refusals.size() != 1 ? "accepted" : refusals[0];
}

TEST(ReferenceKernels, RefusalNamesTheOperandAndWhatIsWrong) {
  const Type f32{.dtype = DType::f32, .shape = {2, 3}}, f64{.dtype = DType::f64, .shape = {2, 3}},
      f16{.dtype = DType::f16, .shape = {2, 3}};
  Type blocked = f32, bits = f32;
  blocked.layout = {.kind = Layout::Kind::opaque, .opaque_name = "blocked", .opaque_bytes = Bytes(64)};
  bits.dtype = DType::bit;
  EXPECT_EQ(refusal(ops::add, {f32, f32}, {f32}), "accepted");
  EXPECT_EQ(refusal(ops::add, {f64, f64}, {f64}), "accepted");
  EXPECT_TRUE(
      support::mentions(refusal(ops::add, {f16, f16}, {f16}), {"reference_add", "0", "f16[2x3]", "computes", "f32", "f64"}));
  EXPECT_TRUE(support::mentions(refusal(ops::add, {f32, f64}, {f32}), {"reference_add", "1", "f64[2x3]", "operand", "f32"}));
  EXPECT_TRUE(support::mentions(refusal(ops::add, {f64, f64}, {f32}), {"reference_add", "0", "f32[2x3]", "operand", "f64"}));
  EXPECT_TRUE(support::mentions(refusal(ops::add, {f32, blocked}, {f32}),
                                {"reference_add", "1", "f32[2x3]", "blocked", "64", "row_major", "channels_last"}));
  EXPECT_EQ(refusal(ops::relu_grad_bits, {f32, bits}, {f32}), "accepted");
  EXPECT_TRUE(
      support::mentions(refusal(ops::relu_grad_bits, {f32, f32}, {f32}), {"reference_relu_grad_bits", "1", "f32[2x3]", "sign"}));
  EXPECT_TRUE(support::mentions(refusal(ops::sign_bits, {f32}, {f32}), {"reference_sign_bits", "bit", "0", "f32[2x3]"}));
}

TEST(ReferenceKernels, BackendOfNoThreadsIsADefect) { EXPECT_THROW(reference_backend(0), InternalError); }

}  // namespace
}  // namespace snug::backends
