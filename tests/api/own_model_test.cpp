// Models of one's own: other inputs than images, ops and parameters that no layer has, sparse weights, snapshots.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/messages.h"
#include <snug/snug.h>

namespace snug {

namespace {

using support::message_of;
using support::TemporaryFolder;

constexpr std::int64_t kFeatures = 6;

// GELU has no layer, and neither has a scale of one's own: they come in as ops.
Model of_features() {
  return Model::define("features", [](Layers& net) {
    Tensor x = net.linear("fc1", net.features({kFeatures}), 16);
    x = net.op("gelu1", "gelu", {x}, {{"tanh", std::int64_t{1}}}).front();
    const Tensor weight = net.parameter("fc2.weight", {3, 16}, {.kind = InitialValue::Kind::normal, .amount = 0.1});
    net.softmax_cross_entropy(net.op("fc2", "linear", {x, weight}).front());
  });
}

struct Batch {
  std::vector<float> features;
  std::vector<std::int32_t> labels;
  std::vector<Input> inputs() const { return {{"features", std::span(features)}, {"labels", std::span(labels)}}; }
};

// The label is which third of the features is largest.
Batch batch_of(std::size_t examples) {
  Batch batch;
  for (std::size_t n = 0; n < examples; ++n) {
    const auto label = static_cast<std::int32_t>(n % 3);
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      const double noise = std::sin(static_cast<double>(n * 7 + static_cast<std::size_t>(f) * 13));
      batch.features.push_back(static_cast<float>((f / 2 == label ? 1.0 : 0.0) + 0.2 * noise));
    }
    batch.labels.push_back(label);
  }
  return batch;
}

TEST(OwnModel, LearnsFromNumbersWithOpsAndParametersOfItsOwn) {
  for (const std::string precision : {"fp32", "bf16"}) {
    Trainer trainer(of_features(), {.batch = 30, .precision = precision, .seed = 1});
    const Batch batch = batch_of(30);
    for (int step = 0; step < 60; ++step) trainer.train(batch.inputs());
    EXPECT_EQ(trainer.steps(), 60U);
    EXPECT_EQ(trainer.evaluate(batch.inputs()).accuracy, 1.0) << precision;
    EXPECT_EQ(trainer.parameter("fc2.weight").size(), 48U);
  }
}

// The label of a token is the one two before it, so only what looks back can know it.
TEST(OwnModel, ConvolutionsAlongSequencesLookBack) {
  constexpr std::int64_t kWords = 6, kLength = 12, kExamples = 8, kWidth = 16;
  std::vector<std::int32_t> tokens, labels;
  for (std::int64_t row = 0; row < kExamples * kLength; ++row) {
    tokens.push_back(static_cast<std::int32_t>((row * row * 7 + row * 3) % 11 % kWords));
    labels.push_back(row % kLength < 2 ? -100 : tokens[static_cast<std::size_t>(row) - 2]);
  }
  const std::vector<Input> inputs{{"tokens", std::span(tokens)}, {"labels", std::span(labels)}};
  const auto learned = [&](const std::function<Tensor(Layers&, Tensor)>& layer) {
    const Model model = Model::define("looks_back", [&](Layers& net) {
      const auto table = [&](const std::string& name) {
        return net.parameter(name, {kWords, kWidth}, {.kind = InitialValue::Kind::normal, .amount = 0.5});
      };
      const Tensor x = layer(net, net.embedding("embedding", net.tokens(kLength), table("words")));
      net.linear_cross_entropy("head", x, table("classes"));
    });
    Trainer trainer(model, {.batch = kExamples, .optimizer = "adamw", .learning_rate = 0.02, .seed = 1});
    for (int step = 0; step < 150; ++step) trainer.train(inputs);
    return trainer.evaluate(inputs).loss;
  };
  const SequenceConvOptions options{.heads = 2, .kernel = 3};
  EXPECT_LT(learned([&](Layers& net, Tensor x) { return net.lightweight_conv("conv", x, options); }), 0.1);
  EXPECT_LT(learned([&](Layers& net, Tensor x) { return net.dynamic_conv("conv", x, options); }), 0.1);
  EXPECT_LT(learned([&](Layers& net, Tensor x) { return net.dynamic_conv_block("block", x, options); }), 0.1);
  EXPECT_GT(learned([&](Layers& net, Tensor x) { return net.linear("fc", x, kWidth); }), 0.5);
}

TEST(OwnModel, InputsThatItDoesNotHaveAreRefused) {
  Trainer trainer(of_features(), {.batch = 4});
  const Batch batch = batch_of(4);
  const auto refusal = [&](const std::vector<Input>& inputs) { return message_of<UserError>([&] { trainer.train(inputs); }); };
  EXPECT_TRUE(support::mentions(refusal({{"pixels", std::span(batch.features)}, {"labels", std::span(batch.labels)}}),
                                {"'features'", "input", "'pixels'"}));
  EXPECT_TRUE(support::mentions(refusal({{"features", std::span(batch.labels)}, {"labels", std::span(batch.labels)}}),
                                {"'features'", "elements", "f32", "i32"}));
  EXPECT_NE(refusal({{"labels", std::span(batch.labels)}}).find("features"), std::string::npos);
  EXPECT_NE(refusal({{"features", std::span(batch.features).first(5)}, {"labels", std::span(batch.labels)}}).find("features"),
            std::string::npos);
  EXPECT_TRUE(support::mentions(
      message_of<UserError>([] { Model::define("odd", [](Layers& net) { net.op("x", "no_such_op", {net.features({2})}); }); }),
      {"'x'", "'no_such_op'"}));
}

TEST(OwnModel, ASnapshotGoesOnToTheSameBits) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "snapshot.safetensors").string();
  const Batch batch = batch_of(12);
  const TrainingOptions options{.batch = 12, .seed = 2};
  Trainer whole(of_features(), options);
  for (int step = 0; step < 3; ++step) whole.train(batch.inputs());
  whole.save_snapshot(file);
  for (int step = 0; step < 3; ++step) whole.train(batch.inputs());
  // Another plan for the same model takes it as well.
  Trainer resumed(of_features(), {.batch = 12, .momentum = 0.9, .seed = 9});
  resumed.load_snapshot(file);
  EXPECT_EQ(resumed.steps(), 3U);
  for (int step = 0; step < 3; ++step) resumed.train(batch.inputs());
  EXPECT_EQ(resumed.parameter("fc1.weight"), whole.parameter("fc1.weight"));
  EXPECT_EQ(resumed.parameter("fc2.weight"), whole.parameter("fc2.weight"));

  const std::string weights = (folder.path() / "weights.safetensors").string();
  whole.export_weights(weights);
  Trainer other(of_features(), {.batch = 5, .seed = 3});
  EXPECT_EQ(other.import_weights(weights), "");
  EXPECT_EQ(other.parameter("fc1.weight"), whole.parameter("fc1.weight"));
}

TEST(OwnModel, ParametersInOtherTypesAndLayoutsAreReadAndWritten) {
  const Model model = Model::zoo("small-cnn", {.image_size = 16});
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    Trainer trainer(model, {.batch = 4, .precision = precision});
    std::vector<float> values = trainer.parameter("conv2.weight");
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8;  // exact in 8 bits
    trainer.set_parameter("conv2.weight", values);
    EXPECT_EQ(trainer.parameter("conv2.weight"), values) << precision;
  }
}

TEST(OwnModel, SparseWeightsAreRewiredWhenTheCallerSaysSo) {
  const Model model = Model::zoo("small-cnn", {.image_size = 16});
  Trainer dense(model, {.batch = 8});
  Trainer sparse(model, {.batch = 8, .nonzero = 0.3});
  EXPECT_EQ(sparse.memory().nonzero, 0.3);
  EXPECT_LT(sparse.memory().by_class.optimizer, dense.memory().by_class.optimizer);
  const std::vector<std::uint8_t> images(std::size_t{8} * 16 * 16 * 3, 90);
  const std::vector<std::int32_t> labels{0, 1, 2, 3, 4, 5, 6, 7};
  sparse.train(images, labels);
  sparse.rewire();
  EXPECT_TRUE(std::isfinite(sparse.train(images, labels).loss));
  EXPECT_NE(message_of<UserError>([&] { dense.rewire(); }).find("no sparse weights"), std::string::npos);
}

// Everything that a recipe says of methods holds for one's own model too.
TEST(OwnModel, ARecipeSaysWhatTheOptionsDoNot) {
  Recipe recipe("features");
  recipe.set("batch", "12").set("fuse_update", "yes").set("optimizer.learning_rate", "0.05").set("seed", "2");
  Trainer fused(of_features(), recipe);
  Trainer plain(of_features(), {.batch = 12, .learning_rate = 0.05, .seed = 2});
  EXPECT_LT(fused.memory().planned_peak_bytes, plain.memory().planned_peak_bytes);
  const Batch batch = batch_of(12);
  for (int step = 0; step < 3; ++step)
    EXPECT_EQ(fused.train(batch.inputs()).loss, plain.train(batch.inputs()).loss) << "fusing the update changes no bit";
}

TEST(OwnModel, ARecipeFreezesItsParametersAndIsNotAskedForARunsOwn) {
  Recipe recipe("features");
  recipe.set("batch", "12").set_each("freeze", {"fc1"});
  Trainer trainer(of_features(), recipe);
  const Batch batch = batch_of(12);
  const std::vector<float> before = trainer.parameter("fc1.weight");
  trainer.train(batch.inputs());
  EXPECT_EQ(trainer.parameter("fc1.weight"), before);
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { Trainer(of_features(), Recipe("features").set("image_size", "8")); }),
                                {"image_size", "trainer"}));
}

TEST(OwnModel, OptionsThatOnlyATrainerHasAreTaken) {
  Trainer trainer(of_features(), {.batch = 12, .min_microbatch = 0, .learning_rate = 0, .seed = ~std::uint64_t{0}});
  const Batch batch = batch_of(12);
  const std::vector<float> before = trainer.parameter("fc1.weight");
  trainer.train(batch.inputs());
  EXPECT_EQ(trainer.parameter("fc1.weight"), before);
}

}  // namespace

}  // namespace snug
