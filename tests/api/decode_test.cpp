// Token by token, a language model gives the scores that it has for whole texts.
#include <cmath>

#include <gtest/gtest.h>

#include "api/generation.h"
#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/error.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo_models.h"
#include "passes/model/decode_only.h"
#include "plan/compile.h"
#include "support/messages.h"
#include "train/scores.h"

namespace snug {
namespace {

using frontend::LanguageModel;

constexpr std::int64_t kContext = 9;
constexpr std::int64_t kVocabulary = 7;

constexpr LanguageModel kGpt{.layers = 2, .width = 8, .heads = 2, .context = kContext + 2};
constexpr LanguageModel kLlama{.block = LanguageModel::Block::llama,
                               .layers = 2,
                               .width = 12,
                               .heads = 3,
                               .context = kContext + 2,
                               .kv_heads = 1,
                               .hidden = 5,
                               .base = 100};

Program model(const LanguageModel& of, std::int64_t batch, std::int64_t length) {
  return frontend::language_model("tiny", of, {.batch = batch, .vocabulary = kVocabulary, .length = length});
}

train::Session whole_texts(const LanguageModel& of, const Backend& backend, DType precision) {
  train::Session session(compile(model(of, 1, kContext), backend, {.methods = {.precision = precision}}), backend, 5);
  // Drawn weights are so small that all scores are nearly equal.
  for (const State& state : session.plan().program.states) {
    if (state.role != Role::parameter) continue;
    std::vector<double> values = session.read_state(state.name);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 6 * values[i] + 0.1 * std::sin(static_cast<double>(i));
    session.write_state(state.name, values);
  }
  return session;
}

train::Session token_by_token(const LanguageModel& of, std::int64_t examples, const Backend& backend,
                              const train::Session& trained) {
  const CompileOptions options{.methods = {.precision = trained.plan().methods.precision}};
  std::vector<PassTiming> timings;
  Program program = decode_only(lower_model(model(of, examples, 1), backend, options), kContext);
  train::Session session(place(rewrite(std::move(program), backend, options, timings)), backend, 5, train::Start::from_file);
  for (const State& state : session.plan().program.states) {
    if (state.role == Role::parameter) session.write_state(state.name, trained.read_state(state.name));
  }
  session.initialize_all_but({});
  return session;
}

std::vector<std::int32_t> text(std::int32_t seed) {
  std::vector<std::int32_t> tokens;
  for (std::int32_t t = 0; t < kContext; ++t)
    tokens.push_back(static_cast<std::int32_t>((seed + 3 * t * t + t / 2) % kVocabulary));
  return tokens;
}

template <typename T>
data::NamedBytes input(std::string_view name, const std::vector<T>& values) {
  return {.name = name, .bytes = std::as_bytes(std::span(values))};
}

// What the whole text gives class `label` at a position: a loss in which only that label counts.
double log_probability(train::Session& session, const std::vector<std::int32_t>& tokens, std::int64_t position,
                       std::int32_t label) {
  std::vector<std::int32_t> labels(tokens.size(), data::kIgnoredLabel);
  labels[static_cast<std::size_t>(position)] = label;
  const std::vector<data::NamedBytes> inputs{input("tokens", tokens), input("labels", labels)};
  return -session.evaluate({.inputs = inputs, .count = 1}).loss;
}

std::vector<double> log_softmax(std::span<const double> scores) {
  double sum = 0;
  for (const double score : scores) sum += std::exp(score);
  std::vector<double> result;
  for (const double score : scores) result.push_back(score - std::log(sum));
  return result;
}

// Three texts at once, of which each begins a token later than the one before; the others are padding by then.
void expect_scores_of_whole_texts(const LanguageModel& of, const Backend& backend, DType precision, double tolerance) {
  constexpr std::int32_t kTexts = 3;
  train::Session whole = whole_texts(of, backend, precision);
  train::Session session = token_by_token(of, kTexts, backend, whole);
  train::Scores scores(session);
  double spread = 0;
  for (std::int32_t round = 0; round < kContext + kTexts - 1; ++round) {
    std::vector<std::int32_t> tokens, positions;
    for (std::int32_t n = 0; n < kTexts; ++n) {
      const bool runs = round >= n && round - n < kContext;
      positions.push_back(runs ? round - n : round < n ? -1 : kContext);
      tokens.push_back(runs ? text(n)[static_cast<std::size_t>(round - n)] : -1);
    }
    const std::vector<data::NamedBytes> inputs{input("positions", positions), input("tokens", tokens)};
    session.decode({.inputs = inputs, .count = kTexts});
    scores.read();
    for (std::int32_t n = 0; n < kTexts; ++n) {
      if (tokens[static_cast<std::size_t>(n)] < 0) continue;
      const std::vector<double> got = log_softmax(scores.of(static_cast<std::size_t>(n)));
      double first = 0;
      for (std::int32_t label = 0; label < kVocabulary; ++label) {
        const double expected = log_probability(whole, text(n), round - n, label);
        EXPECT_NEAR(got[static_cast<std::size_t>(label)], expected, tolerance)
            << "text " << n << ", position " << round - n << ", label " << label;
        if (label == 0) first = expected;
        spread = std::max(spread, std::abs(expected - first));
      }
    }
  }
  EXPECT_GT(spread, 1) << "all tokens are as likely, so this test says nothing";
}

TEST(Decode, TheReferenceGivesTheScoresOfWholeTexts) {
  for (const LanguageModel& of : {kGpt, kLlama})
    expect_scores_of_whole_texts(of, backends::reference_backend(1), DType::f32, 1e-5);
}

TEST(Decode, TheCpuGivesTheScoresOfWholeTexts) {
  for (const LanguageModel& of : {kGpt, kLlama}) {
    expect_scores_of_whole_texts(of, backends::cpu_backend(2), DType::f32, 1e-5);
    expect_scores_of_whole_texts(of, backends::cpu_backend(1), DType::bf16, 0.15);
    expect_scores_of_whole_texts(of, backends::cpu_backend(1), DType::f16, 0.02);
  }
}

TEST(Decode, WhatLooksBeyondItsRowAndHasNoStepIsRefused) {
  frontend::GraphBuilder b("convolutional", 2);
  const ValueId words = b.parameter("words", {.dtype = DType::f32, .shape = {kVocabulary, 4}}, {});
  const ValueId x = b.embedding("embedding", b.tokens(1), words);
  b.linear_cross_entropy("head", b.lightweight_conv("conv", x, {.heads = 2}), words);
  const Program program = std::move(b).finish();
  EXPECT_TRUE(support::mentions(
      support::message_of<UserError>([&] { decode_only(lower_model(program, backends::reference_backend(1), {}), kContext); }),
      {"'conv'", "row"}));
}

}  // namespace
}  // namespace snug
