// AdamW's moments in 8 bits in a language model, on the embedded text: the losses of moments in floats, in a fraction of the
// bytes.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "data/dataset.h"
#include "frontend/zoo.h"
#include "io/plan_file.h"
#include "plan/compile.h"
#include "support/state_bytes.h"
#include "support/temporary_folder.h"
#include "train/session.h"
#include "train/snapshot.h"

namespace snug {

namespace {

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kLength = 64;

CompileOptions options(DType dtype, std::int64_t moment_bits, bool fuses) {
  CompileOptions made{.batch = kBatch,
                      .methods = {.precision = dtype},
                      .update = {.rule = "adamw",
                                 .settings = {{"moment_bits", moment_bits}, {"beta2", 0.95}, {"weight_decay", 0.1}},
                                 .clip_norm = fuses ? 0.0 : 1.0,
                                 .stochastic_rounding = true}};
  if (fuses) made.methods.fuse_update = true;
  return made;
}

train::Session session_of(const CompileOptions& options) {
  const Backend backend = backends::cpu_backend(2);
  const Program graph = frontend::build_zoo_model("gpt-small", {.batch = kBatch, .vocabulary = 257, .length = kLength});
  train::Session session(compile(graph, backend, options), backend, 5);
  session.set_learning_rate(1e-3);
  if (options.update.clip_norm > 0) session.set_clip_norm(options.update.clip_norm);
  return session;
}

// The next windows of the text.
double step(train::Session& session) {
  static const auto text = data::open_dataset("embedded-text", {.text = {.length = kLength}});
  constexpr std::size_t kTokens = kLength * sizeof(std::int32_t);
  std::vector<std::byte> tokens(kBatch * kTokens), labels(kBatch * kTokens);
  for (std::size_t i = 0; i < kBatch; ++i) {
    const std::array parts{std::span(tokens).subspan(i * kTokens, kTokens), std::span(labels).subspan(i * kTokens, kTokens)};
    text->read(data::Split::train, static_cast<std::int64_t>(session.step() * kBatch + i), parts);
  }
  const std::array inputs{data::NamedBytes{.name = "tokens", .bytes = tokens},
                          data::NamedBytes{.name = "labels", .bytes = labels}};
  return session.train_step({.inputs = inputs, .count = kBatch}).loss;
}

std::vector<std::byte> kept_bytes(const train::Session& session) {
  return support::state_bytes(session, [](Role role) { return role == Role::parameter || role == Role::optimizer; });
}

double bytes_per_parameter(const Plan& plan) {
  std::int64_t parameters = 0;
  for (const State& state : plan.program.states) {
    if (state.role == Role::parameter) parameters += state.type.elements();
  }
  return static_cast<double>(plan.persistent_bytes.count()) / static_cast<double>(parameters);
}

// Means of ten steps each: a single one differs by what it happens to read.
void expect_losses_of_floats(DType dtype, bool fuses) {
  train::Session floats = session_of(options(dtype, 32, fuses)), codes = session_of(options(dtype, 8, fuses));
  EXPECT_LT(codes.plan().planned_peak_bytes, floats.plan().planned_peak_bytes);
  codes.executor().start_measuring();
  for (const double most : {5.0, 3.7, 3.3}) {
    double expected = 0, loss = 0;
    for (int i = 0; i < 10; ++i) {
      expected += step(floats) / 10;
      loss += step(codes) / 10;
    }
    EXPECT_NEAR(loss, expected, 0.02 * expected) << "after " << codes.step() << " steps";
    EXPECT_LT(loss, most) << "after " << codes.step() << " steps";
  }
  EXPECT_EQ(codes.executor().measured_peak_bytes(), codes.plan().planned_peak_bytes);
}

TEST(QuantizedMoments, OfALanguageModelHaveTheLossesOfThoseInFloats) { expect_losses_of_floats(DType::f32, false); }

TEST(QuantizedMoments, BesideWeightsOf16BitsAndInBackwardHaveTheLossesOfThoseInFloats) {
  expect_losses_of_floats(DType::bf16, true);
}

TEST(QuantizedMoments, WithWeightsOf16BitsAndTheUpdateInBackwardTakeFourBytesAParameter) {
  for (const char* model : {"gpt-small", "gpt2"}) {
    CompileOptions least = options(DType::bf16, 8, true);
    least.batch = 1;
    EXPECT_LT(bytes_per_parameter(compile(frontend::build_zoo_model(model, {.batch = 1}), backends::cpu_backend(1), least)), 4.1)
        << model;
  }
}

TEST(QuantizedMoments, AResumedRunHasTheBitsOfOneThatWasNeverStopped) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool fuses : {false, true}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + (fuses ? " in backward" : " clipped"));
      const support::TemporaryFolder folder;
      train::Session whole = session_of(options(dtype, 8, fuses));
      for (int i = 0; i < 2; ++i) step(whole);
      train::save_snapshot(folder / "snapshot", whole, {});
      for (int i = 0; i < 2; ++i) step(whole);
      train::Session resumed(io::parse_plan(train::inspect_snapshot(folder / "snapshot").plan), backends::cpu_backend(2), 99);
      train::load_snapshot(folder / "snapshot", resumed);
      if (!fuses) resumed.set_clip_norm(1);
      for (int i = 0; i < 2; ++i) step(resumed);
      EXPECT_TRUE(kept_bytes(resumed) == kept_bytes(whole));
    }
  }
}

TEST(QuantizedMoments, OfSmallParametersAndVectorsStayInFloats) {
  const Plan plan = compile(frontend::build_zoo_model("gpt-small", {.batch = kBatch, .length = kLength}),
                            backends::cpu_backend(1), options(DType::bf16, 8, true));
  int codes = 0;
  for (const Node& node : plan.program.find_section(SectionKind::micro)->nodes) {
    if (node.op->update == nullptr || !node.op->update->reads_updates) continue;
    const bool is_quantized = node.op->name == "adamw_quantized";
    codes += is_quantized ? 1 : 0;
    const State& parameter = plan.program.state(plan.program.find_state(node.layer));
    EXPECT_EQ(is_quantized, parameter.type.elements() >= 4096) << node.layer;
    EXPECT_EQ(node.attributes.real("weight_decay"), parameter.type.shape.rank() < 2 ? 0 : 0.1) << node.layer;
  }
  EXPECT_EQ(codes, 26) << "four matrices of each of six layers, tokens and positions";
}

}  // namespace

}  // namespace snug
