// Which optimizer a run or a trainer has, and that it is the same when the run goes on.
#include "settings/optimizer.h"

#include <gtest/gtest.h>

#include "api/prepare.h"
#include "frontend/zoo.h"
#include "io/file_io.h"
#include "support/files.h"
#include "support/messages.h"
#include <snug/snug.h>

namespace snug {

namespace {

using support::bytes_of;
using support::message_of;
using support::TemporaryFolder;

Recipe short_recipe(const std::string& optimizer) {
  Recipe recipe("small-cnn");
  recipe.set("batch", "100").set("budget", "3MB").set("steps", "6").set("threads", "1").set("optimizer.clip_norm", "1");
  if (!optimizer.empty()) recipe.set("optimizer.kind", optimizer);
  return recipe;
}

std::string folder_named(const TemporaryFolder& folder, const std::string& name) { return (folder.path() / name).string(); }

void stop_after_two_steps(const Recipe& recipe, const std::string& path) {
  snug::Run run = snug::Run::begin(recipe, {.folder = path, .costs = "none"});
  run.train({.on_step = [&](const RunStep& step) {
    if (step.step == 2) run.stop();
  }});
}

TEST(Optimizer, AModelWhoseLossCountsTokensSuitsAdamw) {
  Program model = frontend::build_zoo_model("small-cnn", {.batch = 2});
  EXPECT_EQ(suitable_optimizer(model), "sgd");
  Section& forward = model.section(SectionKind::forward);
  Node& loss = forward.nodes[find_loss(forward).index()];
  LossFacts of_tokens = *loss.op->loss;
  of_tokens.unit = "tokens";
  OpDef op = *loss.op;
  op.loss = &of_tokens;
  loss.op = &op;
  EXPECT_EQ(suitable_optimizer(model), "adamw");
  const settings::Recipe recipe{.model = "tokens"};
  int made = 0;
  const auto make = [&](std::int64_t /*microbatch*/) {
    ++made;
    return model;
  };
  EXPECT_EQ(with_optimizer(recipe, make).optimizer.kind, "adamw");
  EXPECT_EQ(made, 1);
  EXPECT_EQ(with_optimizer({.model = "tokens", .optimizer = {.kind = "sgd"}}, make).optimizer.kind, "sgd");
  EXPECT_EQ(made, 1) << "what is told needs no model";
}

TEST(Optimizer, OfTheModelsWithNamesLanguageModelsSuitAdamw) {
  for (const frontend::ZooEntry& entry : frontend::zoo_entries()) {
    const std::string model(entry.example);
    EXPECT_EQ(with_optimizer({.model = model}).optimizer.kind, frontend::language_model_size(model).has_value() ? "adamw" : "sgd")
        << model;
  }
}

TEST(Optimizer, ARunsRecipeSaysAllOfIt) {
  const TemporaryFolder folder;
  snug::Run plain = snug::Run::begin(short_recipe(""), {.folder = folder_named(folder, "plain"), .costs = "none"});
  for (const char* line : {"kind = \"sgd\"", "learning_rate = 0.1", "momentum = 0.9", "nesterov = true", "weight_decay = 0.0005"})
    EXPECT_NE(plain.recipe_toml().find(line), std::string::npos) << line << "\n" << plain.recipe_toml();
  Recipe recipe = short_recipe("adamw").set("optimizer.beta2", "0.95").set("schedule.kind", "linear");
  snug::Run run = snug::Run::begin(recipe, {.folder = folder_named(folder, "run"), .costs = "none"});
  for (const char* line : {"kind = \"adamw\"", "learning_rate = 0.0003", "beta1 = 0.9", "beta2 = 0.95", "epsilon = 1e-08",
                           "weight_decay = 0.01", "decay_norms = false", "kind = \"linear\""})
    EXPECT_NE(run.recipe_toml().find(line), std::string::npos) << line << "\n" << run.recipe_toml();
  EXPECT_EQ(run.recipe_toml().find("momentum"), std::string::npos) << run.recipe_toml();
  EXPECT_GT(run.memory().by_class.optimizer, plain.memory().by_class.optimizer);
}

TEST(Optimizer, AnAdamwRunThatIsStoppedAndResumedGoesOnToTheSameBits) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    const TemporaryFolder folder;
    const Recipe recipe = short_recipe("adamw").set("precision", precision).set("schedule.warmup_steps", "2");
    const std::string parts = folder_named(folder, "parts");
    snug::Run whole = snug::Run::begin(recipe, {.folder = folder_named(folder, "whole"), .costs = "none"});
    const std::string expected = bytes_of(whole.train().last_snapshot);
    stop_after_two_steps(recipe, parts);
    snug::Run resumed = snug::Run::resume(parts, {}, {.costs = "none"});
    EXPECT_EQ(bytes_of(resumed.train().last_snapshot), expected);
  }
}

// They name no optimizer: there was one.
TEST(Optimizer, ARunOfAnEarlierVersionGoesOnToTheSameBits) {
  const TemporaryFolder folder;
  const std::string parts = folder_named(folder, "parts");
  snug::Run whole = snug::Run::begin(short_recipe(""), {.folder = folder_named(folder, "whole"), .costs = "none"});
  const std::string expected = bytes_of(whole.train().last_snapshot);
  stop_after_two_steps(short_recipe(""), parts);
  const std::filesystem::path path = std::filesystem::path(parts) / "recipe.toml";
  std::string toml = bytes_of(path.string());
  const std::string line = "kind = \"sgd\"\n";
  ASSERT_NE(toml.find(line), std::string::npos);
  toml.erase(toml.find(line), line.size());
  io::write_text_file(path, toml);
  snug::Run resumed = snug::Run::resume(parts, {}, {.costs = "none"});
  EXPECT_EQ(bytes_of(resumed.train().last_snapshot), expected);
  EXPECT_NE(bytes_of(path.string()).find(line), std::string::npos) << "from now on it is named";
}

TEST(Optimizer, OfARunCannotBeAnotherWhenItIsResumed) {
  const TemporaryFolder folder;
  const std::string path = folder_named(folder, "run");
  stop_after_two_steps(short_recipe("adamw"), path);
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] {
                                  snug::Run::resume(path, {{"optimizer.kind", "sgd"}});
                                }),
                                {"resumed", "recipe.toml", "optimizer.kind"}));
  const std::filesystem::path recipe = std::filesystem::path(path) / "recipe.toml";
  std::string toml = bytes_of(recipe.string());
  toml.replace(toml.find("beta1 = 0.9"), 11, "beta1 = 0.8");
  io::write_text_file(recipe, toml);
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { snug::Run::resume(path); }),
                                {"recipe.toml", "optimizer.beta1", "0.8", "0.9"}));
}

TEST(Optimizer, OfATrainerIsAnOption) {
  const snug::Model model = snug::Model::zoo("small-cnn");
  const auto optimizer_bytes = [&](const TrainingOptions& options) {
    return snug::Trainer(model, options).memory().by_class.optimizer;
  };
  const std::int64_t momentum = optimizer_bytes({.batch = 4});
  EXPECT_EQ(optimizer_bytes({.batch = 4, .optimizer = "sgd"}), momentum);
  EXPECT_GE(optimizer_bytes({.batch = 4, .optimizer = "adamw"}), 2 * momentum);
  EXPECT_LT(optimizer_bytes({.batch = 4, .optimizer = "adamw", .moment_bits = 16}), 2 * momentum);
  const auto refused = [&](const TrainingOptions& options) {
    return message_of<UserError>([&] { snug::Trainer(model, options); });
  };
  EXPECT_TRUE(support::mentions(refused({.optimizer = "adam"}), {"optimizer.kind", "'adam'", "sgd", "adamw"}));
  EXPECT_TRUE(support::mentions(refused({.optimizer = "adamw", .nesterov = true}),
                                {"optimizer.nesterov", "setting of sgd", "adamw", "kind"}));
  EXPECT_TRUE(support::mentions(refused({.beta2 = 0.95}), {"optimizer.beta2", "setting of adamw", "sgd", "kind"}));
  EXPECT_EQ(refused({.optimizer = "adamw", .moment_bits = 4}), "optimizer.moment_bits is 4; it can be 8, 16, 32");
}

// A recipe's learning rate is obeyed, and the same steps follow whichever way they are asked for.
TEST(Optimizer, OptionsAndARecipeAreTheSameTrainer) {
  const snug::Model model = snug::Model::zoo("small-cnn");
  Recipe recipe("small-cnn");
  recipe.set("batch", "4").set("seed", "3").set("optimizer.kind", "adamw").set("optimizer.learning_rate", "0.002");
  recipe.set("optimizer.decay_norms", "yes").set("optimizer.weight_decay", "0.1");
  snug::Trainer one(model, recipe);
  snug::Trainer other(
      model, {.batch = 4, .optimizer = "adamw", .learning_rate = 0.002, .weight_decay = 0.1, .decay_norms = true, .seed = 3});
  std::vector<std::uint8_t> images(4 * 32 * 32 * 3);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>((i * 2654435761U) >> 24U);
  const std::vector<std::int32_t> labels{0, 1, 2, 3};
  for (int step = 0; step < 3; ++step) EXPECT_EQ(one.train(images, labels).loss, other.train(images, labels).loss);
  EXPECT_EQ(one.parameter("bn2.weight"), other.parameter("bn2.weight"));
}

}  // namespace

}  // namespace snug
