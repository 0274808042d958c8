// A language model with everything that sequences have: a step must come to the same however its batch is split into
// microbatches, whatever is kept, made again or laid into the bytes of others, and whatever padding holds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "frontend/graph_builder.h"
#include "ir/op.h"
#include "ops/ops.h"
#include "ops/updates/update_rule.h"
#include "plan/compile.h"
#include "runtime/executor.h"

namespace snug {

namespace {

using frontend::GraphBuilder;

constexpr std::int64_t kBatch = 8, kLength = 6, kVocabulary = 40, kWidth = 32;

struct Language {
  bool tied = true;  // one table for the tokens and the classifier
  double dropout = 0;
  bool lengths = false;
  bool convolutions = false;  // lightweight and dynamic ones behind the blocks
};

ValueId attend(GraphBuilder& b, const std::string& name, ValueId qkv, std::int64_t kv_heads, const Language& model,
               std::int64_t key) {
  std::vector<ValueId> inputs{qkv, b.scalars()};
  if (model.lengths)
    inputs.push_back(b.input(name + ".lengths", {.dtype = DType::i32, .shape = {b.type_of(qkv).shape[0] / kLength}}));
  return b
      .emit(name, ops::attention, inputs,
            {{"heads", std::int64_t{4}},
             {"kv_heads", kv_heads},
             {"causal", std::int64_t{1}},
             {"scale", 0.5},
             {"dropout", model.dropout},
             {"key", key},
             {"rows_per_example", kLength}})
      .front();
}

ValueId dropped(GraphBuilder& b, const std::string& name, ValueId x, const Language& model) {
  return model.dropout > 0 ? b.dropout(name, x, model.dropout) : x;
}

// A block of GPT-2 and one of Llama, and convolutions.
Program language(std::int64_t microbatch, const Language& model) {
  GraphBuilder b("language", microbatch);
  const Initializer normal{.kind = Initializer::Kind::normal, .amount = 0.5};
  const auto table = [&](const std::string& name, std::int64_t rows) {
    return b.parameter(name, {.dtype = DType::f32, .shape = {rows, kWidth}}, normal);
  };
  const ValueId words = table("words", kVocabulary);
  ValueId x =
      b.add_positions("positions", b.embedding("embedding", b.tokens(kLength), words), table("positions.weight", kLength + 2));
  x = dropped(b, "drop", x, model);

  ValueId h = b.linear("gpt.qkv", b.layer_norm("gpt.norm1", x), 3 * kWidth);
  h = b.linear("gpt.projection", attend(b, "gpt.attention", h, 4, model, 101), kWidth);
  x = b.add("gpt.add1", x, dropped(b, "gpt.drop", h, model));
  h = b.gelu("gpt.gelu", b.linear("gpt.up", b.layer_norm("gpt.norm2", x), 4 * kWidth));
  x = b.add("gpt.add2", x, b.linear("gpt.down", h, kWidth));

  const AttentionOptions shared{.heads = 4, .kv_heads = 2};
  h = b.linear("llama.qkv", b.rms_norm("llama.norm1", x), 2 * kWidth, {.bias = false});
  h = attend(b, "llama.attention", b.rotary("llama.rotary", h, shared, 100), 2, model, 102);
  x = b.add("llama.add1", x, b.linear("llama.projection", h, kWidth, {.bias = false}));
  h = b.gated_linear_unit("llama.gate", b.linear("llama.up", b.rms_norm("llama.norm2", x), 6 * kWidth, {.bias = false}));
  x = b.add("llama.add2", x, b.silu("llama.silu", b.linear("llama.down", h, kWidth, {.bias = false})));

  if (model.convolutions) {
    const SequenceConvOptions taps{.heads = 4, .kernel = 5, .drop_connect = model.dropout};
    x = b.add("light.add", x, b.lightweight_conv("light.conv", b.layer_norm("light.norm", x), taps));
    x = b.add("dynamic.add", x, b.dynamic_conv_block("dynamic", b.layer_norm("dynamic.norm", x), taps));
  }

  b.linear_cross_entropy("head", b.layer_norm("norm", x), model.tied ? words : table("classifier", kVocabulary), 0.1);
  return std::move(b).finish();
}

// What a step is made of, by example and token. Some labels are ignored.
struct Step {
  std::vector<std::int32_t> tokens, labels, lengths;

  Step() {
    for (std::int64_t n = 0; n < kBatch; ++n) {
      lengths.push_back(static_cast<std::int32_t>(1 + n * 5 % kLength));
      for (std::int64_t t = 0; t < kLength; ++t) {
        tokens.push_back(static_cast<std::int32_t>((n * 17 + t * t * 7) % kVocabulary));
        labels.push_back((n + t) % 5 == 3 ? -100 : static_cast<std::int32_t>((n * 11 + t * 3) % kVocabulary));
      }
    }
  }
};

// The part for `count` examples from `first` on, and garbage where there are no more.
std::vector<std::byte> part_of(const std::vector<std::int32_t>& all, std::int64_t first, std::int64_t count, std::int64_t each,
                               std::int32_t garbage) {
  std::vector<std::int32_t> part(static_cast<std::size_t>(count * each), garbage);
  const auto from = static_cast<std::size_t>(first * each);
  std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from), std::min(part.size(), all.size() - from), part.begin());
  const auto bytes = std::as_bytes(std::span(part));
  return {bytes.begin(), bytes.end()};
}

struct Device {
  Backend backend;
  DType dtype;
  double tolerance;
};
std::vector<Device> devices() {
  return {{backends::reference_backend(2), DType::f64, 1e-12}, {backends::cpu_backend(2), DType::f32, 1e-4}};
}

struct Outcome {
  Metrics metrics;
  std::vector<double> gradients;  // of all parameters
  std::vector<std::byte> states;  // all parameters, gradients and momenta, behind the update
  Bytes planned;
};

// One step in microbatches of the graph's size: forward and backward, and with `updates` so many of them.
Outcome run_steps(Program graph, const Device& device, CompileOptions options = {}, int updates = 0, std::int32_t garbage = 0) {
  options.methods.precision = device.dtype;
  options.batch = kBatch;
  const Plan plan = compile(std::move(graph), device.backend, options);
  const Program& program = plan.program;
  Executor executor(plan, device.backend);
  executor.write_scalars({.seed = 9});
  executor.run(SectionKind::init);
  const Step step;
  const auto counted = std::count_if(step.labels.begin(), step.labels.end(), [](std::int32_t label) { return label >= 0; });
  const std::int64_t microbatch = program.microbatch;
  for (int update = 0; update < std::max(updates, 1); ++update) {
    executor.write_metrics({});
    Scalars scalars{.seed = 9,
                    .step = static_cast<std::uint64_t>(update),
                    .batch_examples = kBatch,
                    .total_weight = static_cast<double>(counted),
                    .learning_rate = 0.05};
    for (std::int64_t first = 0; first < kBatch; first += microbatch) {
      for (const State& state : program.states) {
        if (state.role != Role::input) continue;
        const bool of_tokens = state.name == "tokens" || state.name == "labels";
        const std::vector<std::int32_t>& all = state.name == "tokens" ? step.tokens : of_tokens ? step.labels : step.lengths;
        executor.write(program.find_state(state.name), part_of(all, first, microbatch, of_tokens ? kLength : 1, garbage));
      }
      scalars.first_example = static_cast<std::uint64_t>(first);
      scalars.valid_examples = static_cast<std::uint32_t>(std::min(microbatch, kBatch - first));
      scalars.is_first_microbatch = std::uint16_t{first == 0};
      executor.write_scalars(scalars);
      executor.run(SectionKind::micro);
    }
    if (updates > 0 && program.find_section(SectionKind::update) != nullptr) executor.run(SectionKind::update);
  }
  Outcome outcome{.metrics = executor.read_metrics(), .gradients = {}, .states = {}, .planned = plan.planned_peak_bytes};
  for (std::size_t s = 0; s < program.states.size(); ++s) {
    const State& state = program.states[s];
    std::vector<std::byte> bytes(static_cast<std::size_t>(state.type.bytes().count()));
    executor.read(StateId(s), bytes);
    if (state.role == Role::parameter || state.role == Role::optimizer)
      outcome.states.insert(outcome.states.end(), bytes.begin(), bytes.end());
    if (state.role != Role::gradient) continue;
    for (std::int64_t i = 0; i < state.type.elements(); ++i) {
      double wide = 0;
      float narrow = 0;
      if (state.type.dtype == DType::f64)
        std::memcpy(&wide, bytes.data() + static_cast<std::size_t>(i) * sizeof wide, sizeof wide);
      else
        std::memcpy(&narrow, bytes.data() + static_cast<std::size_t>(i) * sizeof narrow, sizeof narrow);
      outcome.gradients.push_back(state.type.dtype == DType::f64 ? wide : narrow);
    }
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
    ASSERT_FALSE(std::isnan(a.gradients[i])) << i;
    difference = std::max(difference, std::abs(a.gradients[i] - b.gradients[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(difference, tolerance * largest);
}

TEST(Sequences, AStepIsTheSameHoweverItsBatchIsSplitAndWhateverPaddingHolds) {
  for (const Device& device : devices()) {
    for (const Language& model :
         {Language{}, Language{.tied = false, .dropout = 0.3, .lengths = true}, Language{.dropout = 0.3, .convolutions = true}}) {
      const Outcome whole = run_steps(language(kBatch, model), device);
      EXPECT_TRUE(std::isfinite(whole.metrics.loss));
      for (const std::int64_t microbatch : {1, 3, 5}) {
        for (const std::int32_t garbage : {-2147483647, 1000})
          expect_same(run_steps(language(microbatch, model), device, {}, 0, garbage), whole, device.tolerance);
      }
    }
  }
}

// Several steps, every weight and momentum to the bit.
void expect_same_bits(const Outcome& got, const Outcome& plain, const std::string& how) {
  EXPECT_EQ(got.metrics.loss, plain.metrics.loss) << how;
  EXPECT_EQ(got.metrics.weight, plain.metrics.weight) << how;
  EXPECT_TRUE(got.states == plain.states) << how;
}

TEST(Sequences, WhateverIsMadeAgainComesToTheSameBits) {
  const Device device{backends::reference_backend(2), DType::f32, 0};
  for (const Language& model :
       {Language{.dropout = 0.2}, Language{.tied = false, .lengths = true}, Language{.dropout = 0.2, .convolutions = true}}) {
    const Outcome plain = run_steps(language(3, model), device, {}, 3);
    for (const char* strategy :
         {"no-bn", "every-3", "sqrt", "log", "chen", "residual-1", "residual-2*", "greedy:45KB", "optimal:45KB"}) {
      const Outcome made_again =
          run_steps(language(3, model), device, {.methods = {.checkpoint = parse_checkpoint_strategy(strategy)}}, 3);
      expect_same_bits(made_again, plain, strategy);
      EXPECT_LT(made_again.planned, plain.planned) << strategy;
    }
    expect_same_bits(run_steps(language(3, model), device, {.methods = {.offload = true}}, 3), plain, "offload");
    for (const char* pass : {"accumulate_in_place", "share_bytes", "eliminate_dead_nodes", "choose_recipes"})
      expect_same_bits(run_steps(language(3, model), device, {.passes = {.disabled = {pass}}}, 3), plain, pass);
  }
}

TEST(Sequences, AFusedUpdateComesToTheSameBits) {
  const Device device{backends::reference_backend(2), DType::f32, 0};
  for (const bool tied : {false, true}) {
    const Language model{.tied = tied, .dropout = 0.2};
    const Outcome plain = run_steps(language(kBatch, model), device, {}, 3);
    const Outcome fused = run_steps(language(kBatch, model), device, {.methods = {.fuse_update = true}}, 3);
    expect_same_bits(fused, plain, tied ? "tied" : "apart");
    EXPECT_LT(fused.planned, plain.planned);
  }
}

// The tied table gets its gradient in two parts, which are added to the momentum one by one.
TEST(Sequences, DroppedGradientsComeToTheSameUpToTheOrderOfSums) {
  const Device device{backends::reference_backend(2), DType::f32, 0};
  const ops::UpdateOptions update{.settings = ops::sgd_settings({.momentum = 0.9, .weight_decay = 1e-4, .nesterov = false})};
  const Outcome plain = run_steps(language(3, {}), device, {.update = update}, 3);
  const Outcome dropped = run_steps(language(3, {}), device, {.methods = {.drop_gradients = true}, .update = update}, 3);
  EXPECT_LT(dropped.planned, plain.planned);
  ASSERT_EQ(dropped.states.size(), plain.states.size());
  std::vector<float> got(plain.states.size() / sizeof(float)), expected(got.size());
  std::memcpy(got.data(), dropped.states.data(), dropped.states.size());
  std::memcpy(expected.data(), plain.states.data(), plain.states.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
}

}  // namespace

}  // namespace snug
