// What a session takes: the program's inputs by name, as many bytes of each as its examples have, and weights of rows.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "frontend/graph_builder.h"
#include "plan/compile.h"
#include "support/files.h"
#include "support/messages.h"
#include "train/random_batches.h"
#include "train/session.h"

namespace snug::train {

using support::message_of;

namespace {

constexpr std::int64_t kBatch = 6;
constexpr std::int64_t kRows = 2;  // per example
constexpr std::int64_t kWidth = 3;
constexpr std::int64_t kClasses = 4;

struct TwoInputs {
  std::int64_t microbatch = kBatch;
  bool weighted = false;
};

// Two inputs that are added, with a label for each of two rows of an example.
Session session_of(const TwoInputs& model) {
  frontend::GraphBuilder b("two", model.microbatch);
  const std::int64_t rows = model.microbatch * kRows;
  const Type type{.dtype = DType::f32, .shape = {rows, kWidth}};
  const ValueId left = b.input("left", type);
  const ValueId sum = b.add("sum", left, b.input("right", type));
  const ValueId labels = b.input("classes", {.dtype = DType::i32, .shape = {rows}});
  const ValueId weights = model.weighted ? b.input("weights", {.dtype = DType::f32, .shape = {rows}}) : ValueId::none();
  b.softmax_cross_entropy(b.linear("head", sum, kClasses), labels, weights);
  const Backend backend = backends::reference_backend(1);
  Session session(compile(std::move(b).finish(), backend, {.batch = kBatch}), backend, 3);
  // Drawn ones would depend on how many states come before.
  std::vector<double> weight(kClasses * kWidth);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::sin(static_cast<double>(5 * i));
  session.write_state("head.weight", weight);
  session.write_state("head.bias", std::vector<double>(kClasses, 0.1));
  return session;
}

struct Batch {
  std::vector<float> left, right, weights;
  std::vector<std::int32_t> classes;
  std::size_t count;

  explicit Batch(std::size_t examples = kBatch)
      : left(examples * kRows * kWidth),
        right(left.size()),
        weights(examples * kRows, 1.0F),
        classes(examples * kRows),
        count(examples) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[i] = std::sin(static_cast<float>(i));
      right[i] = std::cos(3 * static_cast<float>(i));
    }
    for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int32_t>(i % kClasses);
  }

  std::vector<data::NamedBytes> inputs(bool weighted = false) const {
    std::vector<data::NamedBytes> all{{.name = "left", .bytes = std::as_bytes(std::span(left))},
                                      {.name = "right", .bytes = std::as_bytes(std::span(right))},
                                      {.name = "classes", .bytes = std::as_bytes(std::span(classes))}};
    if (weighted) all.push_back({.name = "weights", .bytes = std::as_bytes(std::span(weights))});
    return all;
  }
};

std::string refusal(Session& session, const std::vector<data::NamedBytes>& inputs, std::size_t count = kBatch) {
  return message_of<UserError>([&] { session.train_step({.inputs = inputs, .count = count}); });
}

TEST(SessionInputs, ComeByNameInAnyOrder) {
  const Batch batch;
  std::vector<data::NamedBytes> inputs = batch.inputs();
  Session one = session_of({}), other = session_of({});
  const double loss = one.train_step({.inputs = inputs, .count = batch.count}).loss;
  std::ranges::reverse(inputs);
  EXPECT_EQ(other.train_step({.inputs = inputs, .count = batch.count}).loss, loss);
  EXPECT_EQ(one.read_state("head.weight"), other.read_state("head.weight"));
}

TEST(SessionInputs, EachMistakeHasItsSentence) {
  Session session = session_of({});
  const Batch batch;
  std::vector<data::NamedBytes> missing = batch.inputs(), unknown = missing, twice = missing, shorter = missing;
  missing.erase(missing.begin() + 1);
  EXPECT_TRUE(support::mentions(refusal(session, missing), {"no 'right'", "'two'", "'left', 'right', 'classes'"}));
  unknown.push_back({.name = "images", .bytes = {}});
  EXPECT_TRUE(support::mentions(refusal(session, unknown), {"batch", "'images'", "'two'", "'left'", "'right'", "'classes'"}));
  twice.push_back(twice.front());
  EXPECT_TRUE(support::mentions(refusal(session, twice), {"'left'", "twice"}));
  shorter[1].bytes = shorter[1].bytes.first(100);
  EXPECT_TRUE(support::mentions(refusal(session, shorter), {"6 examples", "100 bytes", "'right'", "24"}));
  EXPECT_TRUE(support::mentions(refusal(session, batch.inputs(), 0), {"batch", "no examples"}));
  const Batch many(kBatch + 1);
  EXPECT_TRUE(support::mentions(refusal(session, many.inputs(), many.count), {"7 examples", "at most 6"}));
  EXPECT_EQ(session.step(), 0U);
}

TEST(SessionInputs, EveryRowCounts) {
  const Batch batch(5);
  Session whole = session_of({}), split = session_of({.microbatch = 2});
  const Result a = whole.train_step({.inputs = batch.inputs(), .count = 5});
  const Result b = split.train_step({.inputs = batch.inputs(), .count = 5});
  EXPECT_EQ(a.examples, 5);
  EXPECT_EQ(a.weight, 10);
  EXPECT_EQ(b.weight, 10);
  EXPECT_NEAR(a.loss, b.loss, 1e-6);
  EXPECT_NEAR(a.loss, std::log(static_cast<double>(kClasses)), 1.0);
}

TEST(SessionInputs, RowsWeighWhatTheirInputSays) {
  Batch batch(5);
  Session plain = session_of({}), weighted = session_of({.weighted = true}),
          split = session_of({.microbatch = 2, .weighted = true});
  const Result expected = plain.train_step({.inputs = Batch(4).inputs(), .count = 4});
  // Twice the weight of every row changes nothing but the sum of them; the last example weighs nothing.
  for (std::size_t row = 0; row < batch.weights.size(); ++row) batch.weights[row] = row < 8 ? 2.0F : 0.0F;
  for (Session* session : {&weighted, &split}) {
    const Result result = session->train_step({.inputs = batch.inputs(true), .count = 5});
    EXPECT_EQ(result.weight, 16);
    EXPECT_NEAR(result.loss, expected.loss, 1e-6);
    EXPECT_EQ(result.mean_score(), expected.mean_score());
    const std::vector<double> moved = session->read_state("head.weight"), plain_moved = plain.read_state("head.weight");
    for (std::size_t i = 0; i < moved.size(); ++i) EXPECT_NEAR(moved[i], plain_moved[i], 1e-6);
  }
}

TEST(SessionInputs, WeightsThatAreNoneAreRefused) {
  Session session = session_of({.weighted = true});
  Batch batch;
  for (const float bad : {-1.0F, std::numeric_limits<float>::infinity()}) {
    batch.weights[3] = bad;
    EXPECT_EQ(refusal(session, batch.inputs(true)), bad < 0 ? "row 3 of 'weights' is -1; weights are numbers from 0 on"
                                                            : "row 3 of 'weights' is inf; weights are numbers from 0 on");
  }
  std::ranges::fill(batch.weights, 0.0F);
  EXPECT_TRUE(support::mentions(refusal(session, batch.inputs(true)), {"0", "row"}));
  EXPECT_EQ(session.evaluate({.inputs = batch.inputs(true), .count = batch.count}).weight, 0);
}

TEST(RandomBatches, AreDrawnByWhatAnInputIs) {
  Session session = session_of({.microbatch = 3, .weighted = true});
  const RandomBatches batches(session.plan().program, kBatch, 1);
  const Examples batch = batches[0];
  ASSERT_EQ(batch.inputs.size(), 4U);
  double largest = 0;
  for (const data::NamedBytes& input : batch.inputs) {
    for (std::size_t at = 0; at < input.bytes.size(); at += 4) {
      float number = 0;
      std::int32_t whole = 0;
      std::memcpy(&number, input.bytes.data() + at, 4);
      std::memcpy(&whole, input.bytes.data() + at, 4);
      if (input.name == "classes") {
        EXPECT_GE(whole, 0);
        EXPECT_LT(whole, kClasses);
      } else if (input.name == "weights") {
        EXPECT_EQ(number, 1.0F);
      } else {
        largest = std::max(largest, std::abs(static_cast<double>(number)));
      }
    }
  }
  EXPECT_GT(largest, 0.5);
  EXPECT_LE(largest, 1.0);
  EXPECT_TRUE(std::isfinite(session.train_step(batch).loss));
}

TEST(RandomBatches, WholeNumbersOfUnknownRangeAreRefused) {
  frontend::GraphBuilder b("tokens", 2);
  const ValueId x = b.features({3});
  b.input("tokens", {.dtype = DType::i32, .shape = {2, 5}});
  b.softmax_cross_entropy(b.linear("head", x, 4));
  const Plan plan = compile(std::move(b).finish(), backends::reference_backend(1));
  EXPECT_TRUE(
      support::mentions(message_of<UserError>([&] { RandomBatches(plan.program, 2, 1); }), {"'tokens'", "i32[2x5]", "range"}));
}

}  // namespace

}  // namespace snug::train
