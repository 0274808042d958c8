// A value may have several rows per example, as [N*T, D] after a reshape: a step must come to the same however its batch is split
// into microbatches, and padding must weigh nothing.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "end_to_end/golden.h"
#include "frontend/graph_builder.h"
#include "ir/op.h"
#include "ops/ops.h"
#include "plan/compile.h"
#include "runtime/executor.h"

namespace snug {

namespace {

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kSteps = 4;  // rows per example
constexpr std::int64_t kWidth = 128;
constexpr std::int64_t kClasses = 5;

struct Sequences {
  DType dtype = DType::f32;
  double dropout = 0;
  bool dropped_positions = false;  // dropout of a table that is the same for all examples
  bool batch_norm = false;
  bool weighted = false;
};

struct Model {
  Program program;
  DType dtype;
};

// Linear layers over the steps of sequences, each step with a label of its own.
Model sequences(std::int64_t microbatch, const Sequences& model) {
  frontend::GraphBuilder b("sequences", microbatch);
  ValueId x = b.reshape("rows", b.features({kSteps, kWidth}), {microbatch * kSteps, kWidth});
  x = b.linear("first", x, kWidth);
  if (model.batch_norm) x = b.batch_norm("norm", x, {.group_size = 2});
  x = b.relu("relu", x);
  if (model.dropout > 0) x = b.dropout("dropout", x, model.dropout);
  x = b.linear("second", x, kWidth);
  x = b.linear("head", x, kClasses);
  if (model.dropped_positions) {
    // Added to every row of logits: a table of as many rows as a microbatch has would not be one of positions.
    const ValueId table = b.parameter("table", {.dtype = DType::f32, .shape = {kClasses, kClasses}},
                                      {.kind = Initializer::Kind::uniform, .amount = 1});
    x = b.emit("mixed", ops::linear, {x, b.dropout("positions", table, 0.5)}).front();
  }
  const ValueId labels = b.input("labels", {.dtype = DType::i32, .shape = {microbatch * kSteps}});
  const ValueId weights =
      model.weighted ? b.input("weights", {.dtype = DType::f32, .shape = {microbatch * kSteps}}) : ValueId::none();
  b.softmax_cross_entropy(x, labels, weights, 0.1);
  return {.program = std::move(b).finish(), .dtype = model.dtype};
}

// What a step is made of, by example and row.
struct Step {
  std::vector<double> features;
  std::vector<std::int32_t> labels;
  std::vector<float> weights;

  explicit Step(std::int64_t examples = kBatch) {
    for (std::int64_t i = 0; i < examples * kSteps * kWidth; ++i)
      features.push_back(2 * uniform(3, static_cast<std::uint64_t>(i)) - 1);
    for (std::int64_t i = 0; i < examples * kSteps; ++i) {
      labels.push_back(static_cast<std::int32_t>(i % kClasses));
      weights.push_back(i % 3 == 2 ? 0.0F : 0.5F + static_cast<float>(i % 5));
    }
  }
};

struct Outcome {
  Metrics metrics;
  std::vector<double> gradients;
};

template <typename T>
std::vector<std::byte> part_of(const std::vector<T>& all, std::int64_t first, std::int64_t count) {
  std::vector<T> part(static_cast<std::size_t>(count));
  const auto from = std::min(all.size(), static_cast<std::size_t>(first));
  std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from), std::min(part.size(), all.size() - from), part.begin());
  const auto bytes = std::as_bytes(std::span(part));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
std::vector<double> values_of(const Executor& executor, StateId id, std::int64_t elements) {
  std::vector<T> stored(static_cast<std::size_t>(elements));
  executor.read(id, std::as_writable_bytes(std::span(stored)));
  return {stored.begin(), stored.end()};
}

// One step of `examples`, in microbatches of the graph's size; the gradients of all parameters, added up over them. `padding`
// fills the rows of the last microbatch that no example has.
Outcome run_step(const Model& model, const Backend& backend, const Step& step, std::int64_t examples = kBatch,
                 std::optional<std::int64_t> compress_bits = {}, double padding = 0) {
  const Plan plan = compile(model.program, backend, {.methods = {.precision = model.dtype, .compress_bits = compress_bits}});
  const Program& program = plan.program;
  Executor executor(plan, backend);
  executor.write_scalars({.seed = 9});
  executor.run(SectionKind::init);
  executor.write_metrics({});
  const bool weighted = program.find_state("weights").valid();
  double total = 0;
  for (std::int64_t i = 0; i < examples * kSteps; ++i) total += weighted ? step.weights[static_cast<std::size_t>(i)] : 1.0;
  const std::int64_t microbatch = program.microbatch;
  for (std::int64_t first = 0; first < examples; first += microbatch) {
    const std::int64_t count = std::min(microbatch, examples - first);
    std::vector<double> features = step.features;
    features.resize(static_cast<std::size_t>((first + microbatch) * kSteps * kWidth));
    std::fill(features.begin() + (first + count) * kSteps * kWidth, features.end(), padding);
    const StateId input = program.find_state("features");
    if (program.state(input).type.dtype == DType::f64) {
      executor.write(input, part_of(features, first * kSteps * kWidth, microbatch * kSteps * kWidth));
    } else {
      const std::vector<float> narrow(features.begin(), features.end());
      executor.write(input, part_of(narrow, first * kSteps * kWidth, microbatch * kSteps * kWidth));
    }
    executor.write(program.find_state("labels"), part_of(step.labels, first * kSteps, microbatch * kSteps));
    if (weighted) {
      const std::vector<double> wide(step.weights.begin(), step.weights.end());
      const bool is_wide = program.state(program.find_state("weights")).type.dtype == DType::f64;
      executor.write(program.find_state("weights"), is_wide ? part_of(wide, first * kSteps, microbatch * kSteps)
                                                            : part_of(step.weights, first * kSteps, microbatch * kSteps));
    }
    executor.write_scalars({.seed = 9,
                            .step = 3,
                            .first_example = static_cast<std::uint64_t>(first),
                            .valid_examples = static_cast<std::uint32_t>(count),
                            .batch_examples = static_cast<std::uint32_t>(examples),
                            .total_weight = total,
                            .is_first_microbatch = std::uint16_t{first == 0}});
    executor.run(SectionKind::micro);
  }
  Outcome outcome{.metrics = executor.read_metrics(), .gradients = {}};
  for (std::size_t s = 0; s < program.states.size(); ++s) {
    const State& state = program.states[s];
    if (state.role != Role::gradient) continue;
    const std::vector<double> values = state.type.dtype == DType::f64
                                           ? values_of<double>(executor, StateId(s), state.type.elements())
                                           : values_of<float>(executor, StateId(s), state.type.bytes().count() / 4);
    outcome.gradients.insert(outcome.gradients.end(), values.begin(), values.end());
  }
  return outcome;
}

void expect_same(const Outcome& a, const Outcome& b, double tolerance) {
  EXPECT_NEAR(a.metrics.loss, b.metrics.loss, tolerance * std::abs(b.metrics.loss));
  EXPECT_EQ(a.metrics.score, b.metrics.score);
  EXPECT_EQ(a.metrics.weight, b.metrics.weight);
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    largest = std::max(largest, std::abs(b.gradients[i]));
    difference = std::max(difference, std::abs(a.gradients[i] - b.gradients[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(difference, tolerance * largest);
}

struct Device {
  Backend backend;
  DType dtype;
  double tolerance;
};
std::vector<Device> devices() {
  return {{backends::reference_backend(2), DType::f64, 1e-12}, {backends::cpu_backend(2), DType::f32, 1e-4}};
}

TEST(Rows, DropoutOfSeveralRowsPerExampleIsTheSameHoweverTheBatchIsSplit) {
  for (const Device& device : devices()) {
    const Sequences model{.dtype = device.dtype, .dropout = 0.4};
    const Outcome whole = run_step(sequences(kBatch, model), device.backend, Step());
    for (const std::int64_t microbatch : {1, 2, 4})
      expect_same(run_step(sequences(microbatch, model), device.backend, Step()), whole, device.tolerance);
  }
}

TEST(Rows, DropoutOfWhatNoExampleChangesIsTheSameInEveryMicrobatch) {
  for (const Device& device : devices()) {
    const Sequences model{.dtype = device.dtype, .dropped_positions = true};
    const Outcome whole = run_step(sequences(kBatch, model), device.backend, Step());
    expect_same(run_step(sequences(2, model), device.backend, Step()), whole, device.tolerance);
  }
}

TEST(Rows, ActivationsOfSeveralRowsPerExampleArePackedTheSameHoweverTheBatchIsSplit) {
  for (const Device& device : devices()) {
    const Sequences model{.dtype = device.dtype};
    const Outcome whole = run_step(sequences(kBatch, model), device.backend, Step(), kBatch, 2);
    const Outcome exact = run_step(sequences(kBatch, model), device.backend, Step());
    bool packs = false;
    for (std::size_t i = 0; i < whole.gradients.size(); ++i)
      packs = packs || std::abs(whole.gradients[i] - exact.gradients[i]) > 1e-4;
    EXPECT_TRUE(packs);
    // What is packed has at least 1024 elements: two examples.
    for (const std::int64_t microbatch : {2, 4})
      expect_same(run_step(sequences(microbatch, model), device.backend, Step(), kBatch, 2), whole, device.tolerance);
  }
}

TEST(Rows, EveryRowOfAValidExampleCountsInTheLossAndNoneOfPadding) {
  for (const Device& device : devices()) {
    const Sequences model{.dtype = device.dtype};
    const Outcome six = run_step(sequences(6, model), device.backend, Step(), 6);
    EXPECT_EQ(six.metrics.weight, 6 * kSteps);
    expect_same(run_step(sequences(4, model), device.backend, Step(), 6, {}, 1e3), six, device.tolerance);
    expect_same(run_step(sequences(kBatch, model), device.backend, Step(), 6, {}, 1e3), six, device.tolerance);
  }
}

TEST(Rows, BatchNormLeavesTheRowsOfPaddingOut) {
  for (const Device& device : devices()) {
    const Sequences model{.dtype = device.dtype, .batch_norm = true};
    const Outcome six = run_step(sequences(6, model), device.backend, Step(), 6);
    expect_same(run_step(sequences(2, model), device.backend, Step(), 6), six, device.tolerance);
    expect_same(run_step(sequences(4, model), device.backend, Step(), 6, {}, 1e3), six, device.tolerance);
    const Outcome five = run_step(sequences(5, model), device.backend, Step(), 5);
    expect_same(run_step(sequences(6, model), device.backend, Step(), 5, {}, 1e3), five, device.tolerance);
  }
}

TEST(Rows, WeightsOfRowsCountAlikeHoweverTheBatchIsSplit) {
  for (const Device& device : devices()) {
    const Sequences model{.dtype = device.dtype, .weighted = true};
    const Step step;
    double total = 0;
    for (const float weight : step.weights) total += weight;
    const Outcome whole = run_step(sequences(kBatch, model), device.backend, step);
    EXPECT_EQ(whole.metrics.weight, total);
    for (const std::int64_t microbatch : {1, 3, 4})
      expect_same(run_step(sequences(microbatch, model), device.backend, step), whole, device.tolerance);
  }
}

// Weights of 1 for the first examples and 0 for the others, against a step of the first alone; what weighs nothing may hold
// anything.
TEST(Rows, WeightsOfZeroAndOneAreRowsLeftOut) {
  for (const Device& device : devices()) {
    Step step;
    std::fill(step.weights.begin(), step.weights.end(), 1.0F);
    const Outcome expected = run_step(sequences(5, {.dtype = device.dtype}), device.backend, step, 5);
    for (std::size_t row = 5 * kSteps; row < step.weights.size(); ++row) {
      step.weights[row] = 0;
      step.labels[row] = -100;
    }
    const Sequences weighted{.dtype = device.dtype, .weighted = true};
    expect_same(run_step(sequences(kBatch, weighted), device.backend, step), expected, device.tolerance);
    expect_same(run_step(sequences(2, weighted), device.backend, step), expected, device.tolerance);
  }
}

}  // namespace

}  // namespace snug
