#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "support/messages.h"
#include <snug/snug.h>

namespace snug {

namespace {

Model tiny(bool augment = false) {
  return Model::define("tiny", [augment](Layers& net) {
    Tensor x = net.images({.height = 8, .width = 8, .augment = augment, .crop_padding = 1});
    x = net.relu("relu1", net.batch_norm("bn1", net.conv2d("conv1", x, {.out_channels = 4, .padding = 1})));
    net.softmax_cross_entropy(net.linear("fc", net.global_avg_pool("pool", x), 3));
  });
}

struct Batch {
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
};

Batch batch_of(std::size_t examples) {
  Batch batch{.images = std::vector<std::uint8_t>(examples * 8 * 8 * 3), .labels = std::vector<std::int32_t>(examples)};
  for (std::size_t i = 0; i < batch.images.size(); ++i) batch.images[i] = static_cast<std::uint8_t>(i * 37 % 251);
  for (std::size_t i = 0; i < examples; ++i) batch.labels[i] = static_cast<std::int32_t>(i % 3);
  return batch;
}

TEST(Trainer, SameSeedGivesTheSameBits) {
  const Batch batch = batch_of(6);
  std::vector<float> weights[2];
  for (auto& result : weights) {
    Trainer trainer(tiny(true), {.batch = 6, .seed = 4});
    for (int step = 0; step < 3; ++step) trainer.train(batch.images, batch.labels);
    result = trainer.parameter("conv1.weight");
  }
  EXPECT_EQ(weights[0], weights[1]);
  Trainer other(tiny(true), {.batch = 6, .seed = 5});
  EXPECT_NE(other.parameter("conv1.weight"), weights[0]);
}

// On the CPU fp16 has an image a thread as floats in its workspace, so the batch is larger than that.
TEST(Trainer, TrainsWith16BitsInLessMemory) {
  const Batch batch = batch_of(12);
  Trainer single(tiny(), {.batch = 12, .threads = 2});
  EXPECT_EQ(single.memory().precision, "fp32");
  for (const std::string precision : {"bf16", "fp16"}) {
    Trainer trainer(tiny(), {.batch = 12, .precision = precision, .threads = 2});
    EXPECT_EQ(trainer.memory().precision, precision);
    EXPECT_LT(trainer.memory().planned_peak_bytes, single.memory().planned_peak_bytes);
    const double first = trainer.train(batch.images, batch.labels).loss;
    for (int step = 0; step < 10; ++step) trainer.train(batch.images, batch.labels);
    EXPECT_LT(trainer.train(batch.images, batch.labels).loss, first);
  }
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([] { Trainer(tiny(), {.batch = 6, .precision = "fp8"}); }),
                                {"'fp8'", "possible", "fp32", "bf16", "fp16"}));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([] { Trainer(tiny(), {.batch = 6, .rounding = "nearest"}); }),
                                {"rounding", "16", "fp32"}));
}

TEST(Trainer, StatisticsInGroupsDoWhatMicrobatchesDo) {
  const Batch batch = batch_of(7);
  const auto weights = [&](std::int64_t microbatch, std::int64_t group) {
    Trainer trainer(tiny(), {.batch = 7, .microbatch = microbatch, .statistics_group = group});
    for (int step = 0; step < 3; ++step) trainer.train(batch.images, batch.labels);
    return trainer.parameter("conv1.weight");
  };
  const std::vector<float> split = weights(3, 0);
  const std::vector<float> grouped = weights(7, 3);
  const std::vector<float> whole = weights(7, 0);
  double from_grouped = 0;
  double from_whole = 0;
  for (std::size_t i = 0; i < split.size(); ++i) {
    from_grouped = std::max(from_grouped, std::abs(double{split[i]} - grouped[i]));
    from_whole = std::max(from_whole, std::abs(double{split[i]} - whole[i]));
  }
  EXPECT_LT(from_grouped, 1e-5);
  EXPECT_GT(from_whole, 1e-3);
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { weights(4, 3); }), {"microbatch of 4", "groups of 3"}));
}

TEST(Trainer, EvaluationChangesNothing) {
  const Batch batch = batch_of(6);
  Trainer trainer(tiny(), {.batch = 6});
  trainer.train(batch.images, batch.labels);
  const auto before = trainer.parameter("fc.weight");
  const StepResult first = trainer.evaluate(batch.images, batch.labels);
  const StepResult second = trainer.evaluate(batch.images, batch.labels);
  EXPECT_EQ(first.loss, second.loss);
  EXPECT_EQ(trainer.parameter("fc.weight"), before);
}

// Without batch norm a step is the same mathematics however it is split.
Model without_batch_norm() {
  return Model::define("plain", [](Layers& net) {
    Tensor x = net.images({.height = 8, .width = 8, .crop_padding = 1});
    x = net.dropout("dropout", net.relu("relu1", net.conv2d("conv1", x, {.out_channels = 4, .padding = 1, .bias = true})), 0.3);
    net.softmax_cross_entropy(net.linear("fc", net.global_avg_pool("pool", x), 3));
  });
}

TEST(Trainer, MicrobatchesAddUpToTheBatchRemaindersIncluded) {
  const Batch batch = batch_of(7);
  Trainer whole(without_batch_norm(), {.batch = 7, .seed = 2});
  Trainer split(without_batch_norm(), {.batch = 7, .microbatch = 3, .seed = 2});
  EXPECT_LT(split.memory().planned_peak_bytes, whole.memory().planned_peak_bytes);
  for (int step = 0; step < 3; ++step) {
    const StepResult a = whole.train(batch.images, batch.labels);
    const StepResult b = split.train(batch.images, batch.labels);
    EXPECT_NEAR(a.loss, b.loss, 1e-6);
    EXPECT_EQ(a.accuracy, b.accuracy);
  }
  const auto a = whole.parameter("conv1.weight");
  const auto b = split.parameter("conv1.weight");
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
}

TEST(Trainer, EvaluationCountsEveryExampleOnce) {
  Trainer trainer(tiny(), {.batch = 4});
  const Batch batch = batch_of(10);  // two whole microbatches and a half
  const StepResult all = trainer.evaluate(batch.images, batch.labels);
  double loss = 0;
  double correct = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    const StepResult one = trainer.evaluate(std::span(batch.images).subspan(i * 192, 192), std::span(batch.labels).subspan(i, 1));
    loss += one.loss / 10;
    correct += one.accuracy / 10;
  }
  EXPECT_NEAR(all.loss, loss, 1e-7);
  EXPECT_NEAR(all.accuracy, correct, 1e-12);
}

TEST(Trainer, KeepsItsBudgetOrSaysWhatWouldDo) {
  const Trainer whole(tiny(), {.batch = 40});
  EXPECT_EQ(whole.memory().microbatch, 40);
  EXPECT_EQ(whole.memory().plain_peak_bytes, whole.memory().planned_peak_bytes);
  EXPECT_EQ(whole.memory().checkpoint, "none");
  Trainer split(tiny(), {.batch = 40, .budget_bytes = whole.memory().planned_peak_bytes / 2});
  EXPECT_LT(split.memory().microbatch, 40);
  EXPECT_LT(split.memory().planned_peak_bytes, whole.memory().planned_peak_bytes);
  EXPECT_EQ(split.memory().plain_peak_bytes, whole.memory().planned_peak_bytes);
  const Batch batch = batch_of(40);
  split.start_measuring();
  for (int step = 0; step < 2; ++step) split.train(batch.images, batch.labels);
  split.evaluate(batch.images, batch.labels);
  EXPECT_EQ(split.measured_peak_bytes(), split.memory().planned_peak_bytes);
  EXPECT_THROW(Trainer(tiny(), {.batch = 40, .budget_bytes = 1000}), DoesNotFit);
}

TEST(Trainer, ABudgetWithExactMethodsAloneGivesTheBitsOfPlainTraining) {
  const Batch batch = batch_of(40);
  Trainer plain(tiny(), {.batch = 40, .seed = 3});
  Trainer less(tiny(), {.batch = 40, .budget_bytes = plain.memory().planned_peak_bytes * 9 / 10, .allow = "exact", .seed = 3});
  EXPECT_EQ(less.memory().microbatch, 40);
  EXPECT_NE(less.memory().checkpoint, "none");
  EXPECT_LT(less.memory().planned_peak_bytes, plain.memory().planned_peak_bytes);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(less.train(batch.images, batch.labels).loss, plain.train(batch.images, batch.labels).loss);
  }
  EXPECT_EQ(less.parameter("conv1.weight"), plain.parameter("conv1.weight"));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([] { Trainer(tiny(), {.batch = 4, .allow = "magic"}); }),
                                {"'magic'", "reassociated"}));
}

TEST(Trainer, ClipsGradients) {
  const Batch batch = batch_of(6);
  const auto moved = [&](double clip_norm) {
    Trainer trainer(tiny(), {.batch = 6, .momentum = 0, .weight_decay = 0, .nesterov = false, .clip_norm = clip_norm, .seed = 4});
    const std::vector<float> before = trainer.parameter("fc.weight");
    trainer.train(batch.images, batch.labels);
    const std::vector<float> after = trainer.parameter("fc.weight");
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) sum += (after[i] - before[i]) * (after[i] - before[i]);
    return std::sqrt(sum);
  };
  EXPECT_GT(moved(0), 0);
  EXPECT_LE(moved(1e-3), 1.001 * 0.1 * 1e-3) << "at most the learning rate times the norm";
}

TEST(Trainer, FrozenParametersStayAndTakeNoMemory) {
  Model model = tiny();
  Trainer all(model, {.batch = 4});
  Model frozen = model;
  frozen.freeze("conv1").freeze("bn1");
  Trainer trainer(frozen, {.batch = 4});
  EXPECT_LT(trainer.memory().by_class.gradient, all.memory().by_class.gradient);
  EXPECT_LT(trainer.memory().by_class.optimizer, all.memory().by_class.optimizer);
  const Batch batch = batch_of(4);
  const auto conv = trainer.parameter("conv1.weight");
  const auto fc = trainer.parameter("fc.weight");
  trainer.train(batch.images, batch.labels);
  EXPECT_EQ(trainer.parameter("conv1.weight"), conv);
  EXPECT_NE(trainer.parameter("fc.weight"), fc);
}

TEST(Trainer, ParametersAreInLogicalOrder) {
  Trainer trainer(tiny(), {.batch = 2});
  EXPECT_EQ(trainer.parameter_names(),
            (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "fc.weight", "fc.bias"}));
  std::vector<float> weights(4 * 3 * 3 * 3);
  std::iota(weights.begin(), weights.end(), 0.0F);
  trainer.set_parameter("conv1.weight", weights);
  EXPECT_EQ(trainer.parameter("conv1.weight"), weights);
}

TEST(Trainer, MistakesAreNamed) {
  Trainer trainer(tiny(), {.batch = 4});
  const Batch batch = batch_of(5);
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { trainer.train(batch.images, batch.labels); }),
                                {"5 examples", "at most 4"}));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { trainer.train({}, {}); }), {"batch", "no examples"}));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>(
                                    [&] { trainer.train(std::span(batch.images).first(100), std::span(batch.labels).first(1)); }),
                                {"1 example", "100 bytes", "'images'", "192 bytes"}));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { trainer.parameter("conv9.weight"); }),
                                {"model", "'tiny'", "no 'conv9.weight'"}));
  EXPECT_EQ(support::message_of<UserError>([&] { trainer.set_parameter("fc.bias", std::vector<float>(2)); }),
            "'fc.bias' is [3] and takes 3 values, not 2");
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([] { Trainer(tiny(), {.batch = 4, .microbatch = 5}); }),
                                {"microbatch", "5", "4"}));
  for (const int bits : {-4, 3, 16}) {
    EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { Trainer(tiny(), {.batch = 4, .compress_bits = bits}); }),
                                  {"activations", std::to_string(bits), "8", "4", "2", "0"}));
  }
  EXPECT_TRUE(
      support::mentions(support::message_of<UserError>([] { Model::zoo("wrn-29-2"); }), {"'wrn-29-2'", "depth 29", "6n+4"}));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([] { Model::define("empty", [](Layers&) {}); }),
                                {"'empty'", "no loss", "softmax_cross_entropy"}));
}

TEST(Trainer, CheckingModeGivesTheSameBits) {
  const Batch batch = batch_of(4);
  Trainer plain(tiny(), {.batch = 4});
  Trainer checked(tiny(), {.batch = 4, .checking = true});
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(plain.train(batch.images, batch.labels).loss, checked.train(batch.images, batch.labels).loss);
  }
  EXPECT_EQ(plain.parameter("fc.weight"), checked.parameter("fc.weight"));
}

TEST(Trainer, CheckpointsWhatItIsToldTo) {
  const Model model = Model::zoo("wrn-10-1");
  const Trainer plain(model, {.batch = 8, .threads = 1});
  const Trainer less(model, {.batch = 8, .checkpoint = "residual-1", .threads = 1});
  EXPECT_LT(less.memory().planned_peak_bytes, plain.memory().planned_peak_bytes);
  EXPECT_GT(less.predicted_step_seconds(), plain.predicted_step_seconds()) << "what is computed twice takes time";
  EXPECT_GT(plain.predicted_step_seconds(), 0);
  EXPECT_THROW(Trainer(model, {.batch = 8, .checkpoint = "everything"}), UserError);
  EXPECT_THROW(Trainer(model, {.batch = 8, .costs = "no/such/file"}), UserError);
}

}  // namespace

}  // namespace snug
