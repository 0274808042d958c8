#include "train/scores.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "ir/verify.h"
#include "passes/model/evaluate_only.h"
#include "passes/model/keep_scores.h"
#include "small_session.h"

namespace snug::train {
namespace {

// The small network's evaluation alone, with weights drawn from nothing.
Session evaluation(DType dtype) {
  const Backend backend = backends::cpu_backend(1);
  Plan plan = small_plan(backend, {.dtype = dtype});
  return {place(evaluate_only(std::move(plan.program))), backend, 7, Start::from_file};
}

TEST(Scores, TheFirstOfEqualsIsPredicted) {
  EXPECT_EQ(predicted_class(std::vector<double>{1, 3, 3, 2}), 1);
  EXPECT_EQ(predicted_class(std::vector<double>{5}), 0);
  EXPECT_EQ(predicted_class(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN(), 3}), -1);
}

TEST(Scores, ProbabilitiesAreTheSoftmaxLikeliestFirst) {
  const std::vector<ClassProbability> all = likeliest(std::vector<double>{std::log(1), std::log(6), std::log(3)}, 10);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].label, 1);
  EXPECT_NEAR(all[0].probability, 0.6, 1e-12);
  EXPECT_EQ(all[1].label, 2);
  EXPECT_NEAR(all[1].probability, 0.3, 1e-12);
  EXPECT_NEAR(all[2].probability, 0.1, 1e-12);
  EXPECT_EQ(likeliest(std::vector<double>{1, 2, 3}, 1).size(), 1U);
}

TEST(Scores, LargeScoresDoNotOverflowAndFarOnesKeepTheirOrder) {
  const std::vector<ClassProbability> all = likeliest(std::vector<double>{-1e5, 2e4, -1e4}, 3);
  EXPECT_EQ(all[0].probability, 1);
  EXPECT_EQ(all[1].label, 2);
  EXPECT_EQ(all[2].label, 0);
}

// The loss of a language model never has all scores at once; alone they are those that it judges.
TEST(Scores, OfARowOfTokensAreThoseThatTheLossJudges) {
  const Backend backend = backends::cpu_backend(1);
  const Program model = frontend::build_zoo_model("gpt-1-64", {.batch = 2, .length = 5});
  Program program = scores_only(lower_model(model, backend, {}));
  verify(program, "after scores_only");
  std::vector<PassTiming> timings;
  Session alone(place(rewrite(std::move(program), backend, {}, timings)), backend, 7, Start::from_file);
  alone.initialize_all_but({});
  Session whole(compile(model, backend), backend, 7);
  std::vector<std::int32_t> tokens(10), labels(10);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(37 * i % 256);
    labels[i] = i == 3 ? data::kIgnoredLabel : static_cast<std::int32_t>(91 * i % 256);
  }
  const data::NamedBytes of_tokens{.name = "tokens", .bytes = std::as_bytes(std::span(tokens))};
  const data::NamedBytes of_labels{.name = "labels", .bytes = std::as_bytes(std::span(labels))};
  for (const State& state : whole.plan().program.states) {
    if (state.role == Role::parameter) alone.write_state(state.name, whole.read_state(state.name));
  }
  alone.decode({.inputs = std::array{of_tokens}, .count = 2});
  Scores scores(alone);
  scores.read();
  double loss = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0) continue;
    double sum = 0;
    for (const double score : scores.of(row)) sum += std::exp(score);
    loss += (std::log(sum) - scores.of(row)[static_cast<std::size_t>(labels[row])]) / 9;
  }
  EXPECT_NEAR(whole.evaluate({.inputs = std::array{of_tokens, of_labels}, .count = 2}).loss, loss, 1e-5);
}

// Whatever the scores are stored in, classes tallied by them are those that the loss counts.
TEST(Scores, TalliesAgreeWithTheLoss) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Session trained = [&] {
      const Backend backend = backends::cpu_backend(1);
      return Session(small_plan(backend, {.dtype = dtype}), backend, 7);
    }();
    Session session = evaluation(dtype);
    const Program& program = session.plan().program;
    for (const State& state : program.states) {
      if (state.role == Role::parameter || state.role == Role::statistic)
        session.write_state(state.name, trained.read_state(state.name));
    }
    session.initialize_all_but({});
    ClassTallies tallies(session);
    std::vector<std::byte> images(static_cast<std::size_t>(2 * kSmallImage * kSmallImage * 3));
    double score = 0;
    for (std::int32_t round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < images.size(); ++i)
        images[i] = static_cast<std::byte>((i * 2654435761U + static_cast<std::size_t>(round) * 97) >> 7U & 0xFFU);
      const std::vector<std::int32_t> labels{round % 5, (round + 2) % 5};
      const support::Labeled examples(images, labels);
      const Result result = session.evaluate(examples);
      EXPECT_EQ(result.loss, trained.evaluate(examples).loss);
      score += result.score;
      const Examples given = examples;
      tallies.add({.inputs = given.inputs, .examples = given.count});
    }
    std::int64_t correct = 0;
    for (const ClassTally& tally : tallies.classes()) {
      EXPECT_EQ(tally.examples, 8);
      correct += tally.correct;
    }
    EXPECT_EQ(static_cast<double>(correct), score);
    EXPECT_GT(correct, 0);
  }
}

}  // namespace
}  // namespace snug::train
