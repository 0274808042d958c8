#include "settings/recipe.h"

#include <limits>

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::settings {

using support::message_of;
using support::TemporaryFolder;
using support::write_bytes;

namespace {

Recipe full_recipe() {
  return {.model = "wrn-28-2",
          .classes = 100,
          .image_size = 64,
          .data = "a folder/with \"quotes\" \\ and \xC3\xA4\t\x7F\x01",
          .skip_bad_images = true,
          .batch = 128,
          .methods = {.precision = DType::f16,
                      .nonzero = 0.3,
                      .momentum_bits = 8,
                      .microbatch = 16,
                      .statistics_group = 5,
                      .checkpoint = parse_checkpoint_strategy("residual-2*"),
                      .compress_bits = 4,
                      .offload = false,
                      .drop_gradients = true,
                      .fuse_update = true,
                      .prepack_weights = true,
                      .workspace_limit = Bytes(262'144)},
          .rounding = "stochastic",
          .loss_scale_growth = 500,
          .budget_bytes = Bytes(24'000'000),
          .allow = {"exact", "microbatch"},
          .threads = 3,
          .seed = std::numeric_limits<std::int64_t>::max(),
          .epochs = std::nullopt,
          .steps = 12345,
          .eval_every = 100,
          .snapshot_every = 50,
          .keep = 7,
          .freeze = {"conv1.", "bn1"},
          .init = "weights.safetensors",
          .init_prefix = "model.",
          .init_partial = true,
          .optimizer = {.kind = "sgd",
                        .learning_rate = 0.1 + 0.2,
                        .momentum = 0.95,
                        .nesterov = false,
                        .weight_decay = 1e-5,
                        .clip_norm = 1.0},
          .schedule = {.kind = "step", .warmup_steps = 10, .milestones = {60, 120.5, 160}, .gamma = 0.2, .final = 1e-3},
          .sparse = {
              .method = "set", .rewire_every = {50, 0}, .rewire_milestones = {12.5}, .rewire_fraction = 0.02, .threshold = 1e-4}};
}

Recipe with_adamw() {
  Recipe recipe{.model = "small-cnn",
                .optimizer = {.kind = "adamw",
                              .learning_rate = 6e-4,
                              .beta1 = 0.85,
                              .beta2 = 0.95,
                              .epsilon = 1e-9,
                              .weight_decay = 0.1,
                              .decay_norms = true},
                .schedule = {.kind = "inverse-sqrt", .warmup_steps = 7, .warmup_from = 1e-7, .final = 0.1}};
  recipe.methods.moment_bits = 16;
  return recipe;
}

std::string refusal(const std::string& text) {
  const std::string message = message_of<UserError>([&] { parse_recipe(text); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(Recipe, PrintedRecipeParsesToItself) {
  for (const Recipe& recipe : {full_recipe(), with_adamw(), Recipe{.model = "small-cnn"},
                               Recipe{.model = "small-cnn", .min_microbatch = 4, .device = "cuda"}}) {
    const std::string text = print_recipe(recipe);
    EXPECT_EQ(parse_recipe(text), recipe) << text;
    EXPECT_EQ(print_recipe(parse_recipe(text)), text);
  }
}

TEST(Recipe, WhatIsNotSaidKeepsItsDefault) {
  EXPECT_EQ(parse_recipe("model = \"small-cnn\""), Recipe{.model = "small-cnn"});
  const Recipe recipe = parse_recipe("model = \"x\"\nbudget = \"6.4MiB\"\n[optimizer]\nlearning_rate = 1\n");
  EXPECT_EQ(recipe.budget_bytes, Bytes(6710886));
  EXPECT_EQ(recipe.optimizer.learning_rate, 1.0);
  EXPECT_EQ(recipe.optimizer.momentum, std::nullopt);
  EXPECT_EQ(parse_recipe("model = \"x\"\nbudget = 1000").budget_bytes, Bytes(1000));
}

TEST(Recipe, HowWeightsAreTakenGoesOnlyWithWeights) {
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\ninit_partial = true\n"), {"recipe", "line 2", "init_partial"}));
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\ninit_prefix = \"model.\"\n"), {"recipe", "line 2", "init_prefix"}));
  EXPECT_TRUE(
      support::mentions(refusal("model = \"x\"\ninit = \"w\"\ninit_prefix = \"\"\n"), {"line 3", "init_prefix", "empty"}));
}

TEST(Recipe, SparseWeightsAreAskedForByTheirShare) {
  const Recipe recipe = parse_recipe("model = \"x\"\n[sparse]\nnonzero = 0.3\n");
  EXPECT_EQ(recipe.methods.nonzero, 0.3);
  EXPECT_EQ(recipe.sparse.method, "dsr");
  EXPECT_EQ(recipe.sparse.rewire_every, (std::vector<double>{100, 200, 400, 800, 0}));  // the report's
  EXPECT_TRUE(
      support::mentions(refusal("model = \"x\"\n[sparse]\nmethod = \"set\"\n"), {"recipe", "sparse.nonzero", "missing", "0.3"}));
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\n[sparse]\nnonzero = 0\n"),
                                {"recipe", "line 3", "sparse.nonzero", "0.0001", "0", "1"}));
  EXPECT_EQ(refusal("model = \"x\"\n[sparse]\nnonzero = 0.5\nrewire_every = [10, 20]\n"),
            "recipe, line 4: sparse.rewire_every has 2 numbers where 4 milestones need 5");
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\n[sparse]\nnonzero = 0.5\nmethod = \"magic\"\n"),
                                {"line 4", "sparse.method", "'magic'", "dsr"}));
}

TEST(Recipe, BudgetsArePrintedExactly) {
  for (const std::int64_t bytes : {1L, 999L, 1000L, 24'000'000L, 24'000'001L, 24'000'500L, 9'007'199'254'740'992L}) {
    const Recipe recipe{.model = "x", .budget_bytes = Bytes(bytes)};
    EXPECT_EQ(parse_recipe(print_recipe(recipe)), recipe) << bytes;
  }
}

TEST(Recipe, UnknownKeysAreRefusedWithTheNearestKnownOne) {
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\n\nbacth = 5"), {"line 3", "there", "key", "'bacth'", "batch"}));
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\n[optimizr]\nmomentum = 1"),
                                {"line 2", "there", "key", "'optimizr'", "optimizer"}));
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\n[optimizer]\nlr = 1\nmomentun = 0.5"),
                                {"line 3", "there", "key", "'optimizer.lr'", "optimizer.learning_rate"}));
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\nschedule.gama = 1"),
                                {"line 2", "there", "key", "'schedule.gama'", "schedule.gamma"}));
}

TEST(Recipe, WhereNoKeyIsNearAllOfTheTableAreNamed) {
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\n[schedule]\npolicy = 1"),
                                {"line 3", "there", "'schedule.policy'", "warmup_steps", "final"}));
}

TEST(Recipe, MistypedChoicesAreRefusedWithTheNearest) {
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\nprecision = \"bf-16\""),
                                {"recipe", "line 2", "precision", "'bf-16'", "fp32", "fp16", "bf16"}));
  EXPECT_TRUE(support::mentions(refusal("model = \"x\"\n[schedule]\nkind = \"cosin\""),
                                {"line 3", "schedule.kind", "'cosin'", "constant", "cosine"}));
}

TEST(Recipe, WrongTypesAndRangesAreRefusedWithTheirLine) {
  const std::string model = "model = \"x\"\n";
  EXPECT_TRUE(support::mentions(refusal(""), {"recipe", "no model"}));
  EXPECT_TRUE(support::mentions(refusal("model = 3"), {"line 1", "model", "text"}));
  EXPECT_EQ(refusal(model + "compress = 3"), "recipe, line 2: compress is 3; it can be 8, 4, 2");
  EXPECT_EQ(refusal(model + "[optimizer]\nmomentum_bits = 4"), "recipe, line 3: optimizer.momentum_bits is 4; it can be 8, 32");
  EXPECT_TRUE(support::mentions(refusal(model + "batch = 1.5"), {"recipe", "line 2", "batch", "whole"}));
  EXPECT_TRUE(support::mentions(refusal(model + "batch = 0"), {"recipe", "line 2", "batch", "1", "1000000000", "0"}));
  EXPECT_TRUE(support::mentions(refusal(model + "batch = \"5\""), {"recipe", "line 2", "batch", "whole"}));
  EXPECT_TRUE(support::mentions(refusal(model + "seed = -1"), {"line 2", "seed", "negative"}));
  EXPECT_TRUE(support::mentions(refusal(model + "microbatch = 200"), {"recipe", "line 2", "microbatch", "200", "100"}));
  EXPECT_TRUE(support::mentions(refusal(model + "budget = true"), {"recipe", "line 2", "budget", "size"}));
  EXPECT_TRUE(support::mentions(refusal(model + "budget = \"24XB\""),
                                {"line 2", "budget", "wrong", "'24XB'", "6.7MB", "2^20", "6700000"}));
  EXPECT_TRUE(support::mentions(refusal(model + "budget = 0"), {"recipe", "line 2", "budget", "0"}));
  EXPECT_TRUE(support::mentions(refusal(model + "precision = \"fp8\""),
                                {"recipe", "line 2", "precision", "'fp8'", "fp32", "fp16", "bf16"}));
  EXPECT_TRUE(support::mentions(refusal(model + "device = \"tpu\""), {"line 2", "device", "'tpu'", "cpu"}));
  EXPECT_TRUE(
      support::mentions(refusal(model + "allow = [\"exact\", \"lossy\"]"), {"line 2", "allow", "'lossy'", "reassociated"}));
  EXPECT_TRUE(support::mentions(refusal(model + "allow = \"exact\""), {"line 2", "allow", "list"}));
  EXPECT_TRUE(support::mentions(refusal(model + "freeze = [1]"), {"line 2", "freeze", "list"}));
  EXPECT_TRUE(support::mentions(refusal(model + "epochs = 1\nsteps = 2"), {"line 3", "steps", "epochs"}));
  EXPECT_TRUE(support::mentions(refusal(model + "statistics_group = 10\nmin_microbatch = 10"),
                                {"line 3", "min_microbatch", "effect", "statistics_group"}));
  EXPECT_TRUE(support::mentions(refusal(model + "optimizer = 1"), {"line 2", "optimizer", "table"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[optimizer]\nmomentum = 1.5"),
                                {"recipe", "line 3", "optimizer.momentum", "0", "1", "1.5"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[optimizer]\nlearning_rate = nan"),
                                {"recipe", "line 3", "optimizer.learning_rate", "0", "1000000", "nan"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[optimizer]\nnesterov = 1"), {"line 3", "optimizer.nesterov", "true"}));
  EXPECT_TRUE(
      support::mentions(refusal(model + "[optimizer]\nmomentum = 0"), {"line 3", "optimizer.momentum", "0", "nesterov = false"}));
  EXPECT_TRUE(
      support::mentions(refusal(model + "[schedule]\nkind = \"square\""), {"line 3", "schedule.kind", "'square'", "constant"}));
  EXPECT_EQ(refusal(model + "[schedule]\nkind = \"step\"\nmilestones = [3, 2]"),
            "recipe, line 4: schedule.milestones must increase");
  EXPECT_TRUE(
      support::mentions(refusal(model + "[schedule]\nkind = \"step\""), {"recipe", "schedule.milestones", "kind", "60", "120"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[schedule]\nmilestones = [3]"), {"line 3", "schedule.milestones", "kind"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[schedule]\nkind = \"inverse-sqrt\""),
                                {"recipe", "schedule.warmup_steps", "inverse-sqrt", "4000"}));
  EXPECT_TRUE(
      support::mentions(refusal(model + "[schedule]\nwarmup_from = 1e-7"), {"line 3", "schedule.warmup_from", "warmup_steps"}));
}

TEST(Recipe, LimitsAreThoseOfTheFlags) {
  const std::string model = "model = \"x\"\n";
  EXPECT_TRUE(
      support::mentions(refusal(model + "classes = 4294967296"), {"recipe", "line 2", "classes", "10000000", "4294967296"}));
  EXPECT_TRUE(support::mentions(refusal(model + "image_size = 4097"), {"recipe", "line 2", "image_size", "1", "4096", "4097"}));
  EXPECT_TRUE(support::mentions(refusal(model + "threads = 1025"), {"recipe", "line 2", "threads", "1", "1024", "1025"}));
  EXPECT_EQ(parse_recipe(model + "threads = 0").threads, 0) << "all cores";
  EXPECT_TRUE(support::mentions(refusal(model + "steps = 1000000000001"),
                                {"recipe", "line 2", "steps", "1", "1000000000000", "1000000000001"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[schedule]\ngamma = 0"), {"recipe", "line 3", "schedule.gamma", "0", "1"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[optimizer]\nlearning_rate = 0"),
                                {"recipe", "line 3", "optimizer.learning_rate", "0", "1000000"}));
  EXPECT_TRUE(support::mentions(refusal(model + "[optimizer]\nclip_norm = 0"), {"recipe", "line 3", "optimizer.clip_norm", "0"}));
  EXPECT_TRUE(support::mentions(refusal(model + "workspace_limit = -1"), {"line 2", "workspace_limit", "negative"}));
}

TEST(Recipe, RefusalNamesFlagsToWhoeverGaveFlags) {
  const auto refused = [](Recipe recipe) {
    recipe.model = "x";
    return message_of<UserError>([&] { check_recipe(recipe, SaidBy::flags); });
  };
  EXPECT_TRUE(
      support::mentions(refused({.classes = std::int64_t{1} << 32U}), {"--classes", "whole", "2", "10000000", "4294967296"}));
  EXPECT_TRUE(support::mentions(refused({.budget_bytes = Bytes(0)}), {"--budget", "0", "bytes"}));
  EXPECT_TRUE(support::mentions(refused({.methods = {.statistics_group = 1}, .min_microbatch = 1}),
                                {"--min-microbatch", "effect", "--statistics-group"}));
  EXPECT_TRUE(support::mentions(refused({.optimizer = {.momentum = 0}}), {"--momentum", "0", "goes", "--nesterov"}));
  EXPECT_TRUE(support::mentions(refused({.schedule = {.final = 2}}), {"schedule.final", "0", "1", "2"})) << "it has no flag";
}

TEST(Recipe, TextThatIsNotTomlIsRefusedWithItsLine) {
  EXPECT_EQ(refusal("model = \"x\"\nbatch = ").rfind("recipe, line 2: this is not TOML: ", 0), 0U);
  EXPECT_EQ(refusal("model = \"x\"\nmodel = \"y\"").rfind("recipe, line 2: this is not TOML: ", 0), 0U);
}

TEST(Recipe, CharactersBeyondAsciiStandOnlyInQuotesAndComments) {
  const Recipe recipe = parse_recipe(
      "\xEF\xBB\xBF"
      "model = \"\xC3\xA4 \\\" # \xF0\x9F\x98\x80\" # \xC3\xA4 ' \"\n"
      "data = '\xC3\xA4\\n\"'\n"
      "init = '\\'");
  EXPECT_EQ(recipe.model, "\xC3\xA4 \" # \xF0\x9F\x98\x80");
  EXPECT_EQ(recipe.data, "\xC3\xA4\\n\"");
  EXPECT_EQ(recipe.init, "\\");
  const std::string stray = "there is a character outside quotes that is not ASCII";
  EXPECT_EQ(refusal("\xC3\xA4 = 1"), "recipe, line 1: " + stray);
  EXPECT_EQ(refusal("model = \"x\" # '\n \xE2\xBC\x80 = 1"), "recipe, line 2: " + stray);
  EXPECT_EQ(refusal("model = 'x'\xC3\xA4"), "recipe, line 1: " + stray);
  EXPECT_TRUE(support::mentions(refusal("\nmodel = \"\"\"x\"\"\""), {"line 2", "texts", "lines"}));
  EXPECT_TRUE(support::mentions(refusal("model = \"\\\xC3\xA4\""), {"line 1", "there", "backslash"}));
  EXPECT_EQ(refusal("model = \"x\n\xC3\xA4\""), "recipe, line 2: " + stray);
  // Where the parser gives up on a value it reads on through the quotes.
  EXPECT_EQ(refusal("batch = 1x \"\xC5\x99\"").rfind("recipe, line 1: this is not TOML: ", 0), 0U);
  for (const char* bytes : {"\xFF", "\xC3", "\xC3(", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"})
    EXPECT_TRUE(support::mentions(refusal("model = '" + std::string(bytes) + "'"), {"line 1", "UTF-8"}));
}

TEST(Recipe, FlagsThatCannotBePrintedAreRefused) {
  EXPECT_TRUE(support::mentions(message_of<UserError>([] { print_recipe({.model = "x", .data = "a\xFF"}); }), {"data", "UTF-8"}));
  EXPECT_TRUE(support::mentions(message_of<UserError>([] { check_recipe({.model = ""}, SaidBy::recipe); }), {"model", "empty"}));
  EXPECT_TRUE(support::mentions(
      message_of<UserError>([] { check_recipe({.model = "x", .seed = std::uint64_t{1} << 63U}, SaidBy::recipe); }),
      {"seed", "2^63"}));
}

TEST(Recipe, FileIsNamedInTheRefusal) {
  const TemporaryFolder folder;
  write_bytes(folder / "r.toml", "model = \"x\"\nbatch = 0\n");
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { read_recipe(folder / "r.toml"); }),
                                {(folder / "r.toml").string(), "line 2", "batch", "whole", "1", "1000000000", "0"}));
}

}  // namespace

}  // namespace snug::settings
