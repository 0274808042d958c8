#include "settings/recipe.h"

#include <limits>

#include <gtest/gtest.h>

#include "support/files.h"
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
                .schedule = {.kind = "linear", .warmup_steps = 7, .final = 0.1}};
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
  EXPECT_EQ(refusal("model = \"x\"\ninit_partial = true\n"),
            "recipe, line 2: init_partial is about the weights that init names; give that, or leave it out");
  EXPECT_EQ(refusal("model = \"x\"\ninit_prefix = \"model.\"\n"),
            "recipe, line 2: init_prefix is about the weights that init names; give that, or leave it out");
  EXPECT_EQ(refusal("model = \"x\"\ninit = \"w\"\ninit_prefix = \"\"\n"), "recipe, line 3: init_prefix must not be empty");
}

TEST(Recipe, SparseWeightsAreAskedForByTheirShare) {
  const Recipe recipe = parse_recipe("model = \"x\"\n[sparse]\nnonzero = 0.3\n");
  EXPECT_EQ(recipe.methods.nonzero, 0.3);
  EXPECT_EQ(recipe.sparse.method, "dsr");
  EXPECT_EQ(recipe.sparse.rewire_every, (std::vector<double>{100, 200, 400, 800, 0}));  // the report's
  EXPECT_EQ(refusal("model = \"x\"\n[sparse]\nmethod = \"set\"\n"),
            "recipe: sparse.nonzero is missing; say what share of the weights is stored, as in 0.3");
  EXPECT_EQ(refusal("model = \"x\"\n[sparse]\nnonzero = 0\n"),
            "recipe, line 3: sparse.nonzero takes a number from 0.0001 to 1, not 0");
  EXPECT_EQ(refusal("model = \"x\"\n[sparse]\nnonzero = 0.5\nrewire_every = [10, 20]\n"),
            "recipe, line 4: sparse.rewire_every has 2 numbers where 4 milestones need 5");
  EXPECT_EQ(refusal("model = \"x\"\n[sparse]\nnonzero = 0.5\nmethod = \"magic\"\n"),
            "recipe, line 4: sparse.method is 'magic'; it can be fixed, set, dsr");
}

TEST(Recipe, BudgetsArePrintedExactly) {
  for (const std::int64_t bytes : {1L, 999L, 1000L, 24'000'000L, 24'000'001L, 24'000'500L, 9'007'199'254'740'992L}) {
    const Recipe recipe{.model = "x", .budget_bytes = Bytes(bytes)};
    EXPECT_EQ(parse_recipe(print_recipe(recipe)), recipe) << bytes;
  }
}

TEST(Recipe, UnknownKeysAreRefusedWithTheNearestKnownOne) {
  EXPECT_EQ(refusal("model = \"x\"\n\nbacth = 5"), "recipe, line 3: there is no key 'bacth'; did you mean batch?");
  EXPECT_EQ(refusal("model = \"x\"\n[optimizr]\nmomentum = 1"),
            "recipe, line 2: there is no key 'optimizr'; did you mean optimizer?");
  EXPECT_EQ(refusal("model = \"x\"\n[optimizer]\nlr = 1\nmomentun = 0.5"),
            "recipe, line 3: there is no key 'optimizer.lr'; did you mean optimizer.learning_rate?");
  EXPECT_EQ(refusal("model = \"x\"\nschedule.gama = 1"),
            "recipe, line 2: there is no key 'schedule.gama'; did you mean schedule.gamma?");
}

TEST(Recipe, WhereNoKeyIsNearAllOfTheTableAreNamed) {
  EXPECT_EQ(
      refusal("model = \"x\"\n[schedule]\npolicy = 1"),
      "recipe, line 3: there is no key 'schedule.policy'; the keys of this table are kind, warmup_steps, milestones, gamma, "
      "final");
}

TEST(Recipe, MistypedChoicesAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal("model = \"x\"\nprecision = \"bf-16\""),
            "recipe, line 2: precision is 'bf-16'; it can be fp32, fp16, bf16; did you mean bf16?");
  EXPECT_EQ(refusal("model = \"x\"\n[schedule]\nkind = \"cosin\""),
            "recipe, line 3: schedule.kind is 'cosin'; it can be constant, step, cosine, linear; did you mean cosine?");
}

TEST(Recipe, WrongTypesAndRangesAreRefusedWithTheirLine) {
  const std::string model = "model = \"x\"\n";
  EXPECT_EQ(refusal(""), "recipe has no model; add a line model = \"...\"");
  EXPECT_EQ(refusal("model = 3"), "recipe, line 1: model must be a text");
  EXPECT_EQ(refusal(model + "compress = 3"), "recipe, line 2: compress is 3; it can be 8, 4, 2");
  EXPECT_EQ(refusal(model + "[optimizer]\nmomentum_bits = 4"), "recipe, line 3: optimizer.momentum_bits is 4; it can be 8, 32");
  EXPECT_EQ(refusal(model + "batch = 1.5"), "recipe, line 2: batch must be a whole number");
  EXPECT_EQ(refusal(model + "batch = 0"), "recipe, line 2: batch takes a whole number from 1 to 1000000000, not 0");
  EXPECT_EQ(refusal(model + "batch = \"5\""), "recipe, line 2: batch must be a whole number");
  EXPECT_EQ(refusal(model + "seed = -1"), "recipe, line 2: seed must not be negative");
  EXPECT_EQ(refusal(model + "microbatch = 200"),
            "recipe, line 2: microbatch of 200 is more than the batch of 100; use at most that");
  EXPECT_EQ(refusal(model + "budget = true"), "recipe, line 2: budget must be a size such as \"24MB\"");
  EXPECT_EQ(refusal(model + "budget = \"24XB\""),
            "recipe, line 2: budget is wrong: '24XB' is not a size; write a number of bytes such as 6.7MB (1e6), 6.4MiB (2^20) "
            "or 6700000");
  EXPECT_EQ(refusal(model + "budget = 0"), "recipe, line 2: budget must be more than 0 bytes");
  EXPECT_EQ(refusal(model + "precision = \"fp8\""), "recipe, line 2: precision is 'fp8'; it can be fp32, fp16, bf16");
  EXPECT_EQ(refusal(model + "device = \"tpu\""), "recipe, line 2: device is 'tpu'; it can be cpu, cuda");
  EXPECT_EQ(refusal(model + "allow = [\"exact\", \"lossy\"]"),
            "recipe, line 2: allow is 'lossy'; it can be exact, reassociated, microbatch, precision, compressed, sparse");
  EXPECT_EQ(refusal(model + "allow = \"exact\""), "recipe, line 2: allow must be a list of texts");
  EXPECT_EQ(refusal(model + "freeze = [1]"), "recipe, line 2: freeze must be a list of texts");
  EXPECT_EQ(refusal(model + "epochs = 1\nsteps = 2"), "recipe, line 3: steps cannot stand beside epochs; give one of the two");
  EXPECT_EQ(
      refusal(model + "statistics_group = 10\nmin_microbatch = 10"),
      "recipe, line 3: min_microbatch has no effect beside statistics_group, which keeps statistics the same however the batch "
      "is split; leave out one");
  EXPECT_EQ(refusal(model + "optimizer = 1"), "recipe, line 2: optimizer must be a table");
  EXPECT_EQ(refusal(model + "[optimizer]\nmomentum = 1.5"),
            "recipe, line 3: optimizer.momentum takes a number from 0 to 1, not 1.5");
  EXPECT_EQ(refusal(model + "[optimizer]\nlearning_rate = nan"),
            "recipe, line 3: optimizer.learning_rate takes a number above 0, up to 1000000, not nan");
  EXPECT_EQ(refusal(model + "[optimizer]\nnesterov = 1"), "recipe, line 3: optimizer.nesterov must be true or false");
  EXPECT_EQ(refusal(model + "[optimizer]\nmomentum = 0"),
            "recipe, line 3: optimizer.momentum of 0 goes only with nesterov = false; say that, or use a momentum above 0");
  EXPECT_EQ(refusal(model + "[schedule]\nkind = \"square\""),
            "recipe, line 3: schedule.kind is 'square'; it can be constant, step, cosine, linear");
  EXPECT_EQ(refusal(model + "[schedule]\nkind = \"step\"\nmilestones = [3, 2]"),
            "recipe, line 4: schedule.milestones must increase");
  EXPECT_EQ(refusal(model + "[schedule]\nkind = \"step\""),
            "recipe: schedule.milestones must name at least one epoch with kind = \"step\", as in milestones = [60, 120]");
  EXPECT_EQ(refusal(model + "[schedule]\nmilestones = [3]"),
            "recipe, line 3: schedule.milestones go only with kind = \"step\"; add that, or leave them out");
}

TEST(Recipe, LimitsAreThoseOfTheFlags) {
  const std::string model = "model = \"x\"\n";
  EXPECT_EQ(refusal(model + "classes = 4294967296"),
            "recipe, line 2: classes takes a whole number from 2 to 10000000, not 4294967296");
  EXPECT_EQ(refusal(model + "image_size = 4097"), "recipe, line 2: image_size takes a whole number from 1 to 4096, not 4097");
  EXPECT_EQ(refusal(model + "threads = 1025"), "recipe, line 2: threads takes a whole number from 1 to 1024, not 1025");
  EXPECT_EQ(parse_recipe(model + "threads = 0").threads, 0) << "all cores";
  EXPECT_EQ(refusal(model + "steps = 1000000000001"),
            "recipe, line 2: steps takes a whole number from 1 to 1000000000000, not 1000000000001");
  EXPECT_EQ(refusal(model + "[schedule]\ngamma = 0"), "recipe, line 3: schedule.gamma takes a number above 0, up to 1, not 0");
  EXPECT_EQ(refusal(model + "[optimizer]\nlearning_rate = 0"),
            "recipe, line 3: optimizer.learning_rate takes a number above 0, up to 1000000, not 0");
  EXPECT_EQ(refusal(model + "[optimizer]\nclip_norm = 0"),
            "recipe, line 3: optimizer.clip_norm takes a number above 0, up to 1e+30, not 0");
  EXPECT_EQ(refusal(model + "workspace_limit = -1"), "recipe, line 2: workspace_limit must not be negative");
}

TEST(Recipe, RefusalNamesFlagsToWhoeverGaveFlags) {
  const auto refused = [](Recipe recipe) {
    recipe.model = "x";
    return message_of<UserError>([&] { check_recipe(recipe, SaidBy::flags); });
  };
  EXPECT_EQ(refused({.classes = std::int64_t{1} << 32U}), "--classes takes a whole number from 2 to 10000000, not 4294967296");
  EXPECT_EQ(refused({.budget_bytes = Bytes(0)}), "--budget must be more than 0 bytes");
  EXPECT_EQ(refused({.methods = {.statistics_group = 1}, .min_microbatch = 1}),
            "--min-microbatch has no effect beside --statistics-group, which keeps statistics the same however the batch is "
            "split; leave out one");
  EXPECT_EQ(refused({.optimizer = {.momentum = 0}}),
            "--momentum of 0 goes only with --nesterov no; say that, or use a momentum above 0");
  EXPECT_EQ(refused({.schedule = {.final = 2}}), "schedule.final takes a number from 0 to 1, not 2") << "it has no flag";
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
  EXPECT_EQ(refusal("\nmodel = \"\"\"x\"\"\""), "recipe, line 2: texts of several lines are not possible here");
  EXPECT_EQ(refusal("model = \"\\\xC3\xA4\""), "recipe, line 1: there is a backslash before a character that takes none");
  EXPECT_EQ(refusal("model = \"x\n\xC3\xA4\""), "recipe, line 2: " + stray);
  // Where the parser gives up on a value it reads on through the quotes.
  EXPECT_EQ(refusal("batch = 1x \"\xC5\x99\"").rfind("recipe, line 1: this is not TOML: ", 0), 0U);
  for (const char* bytes : {"\xFF", "\xC3", "\xC3(", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"})
    EXPECT_EQ(refusal("model = '" + std::string(bytes) + "'"), "recipe, line 1: this is not UTF-8");
}

TEST(Recipe, FlagsThatCannotBePrintedAreRefused) {
  EXPECT_EQ(message_of<UserError>([] { print_recipe({.model = "x", .data = "a\xFF"}); }), "data is not UTF-8");
  EXPECT_EQ(message_of<UserError>([] { check_recipe({.model = ""}, SaidBy::recipe); }), "model must not be empty");
  EXPECT_EQ(message_of<UserError>([] { check_recipe({.model = "x", .seed = std::uint64_t{1} << 63U}, SaidBy::recipe); }),
            "seed must be below 2^63");
}

TEST(Recipe, FileIsNamedInTheRefusal) {
  const TemporaryFolder folder;
  write_bytes(folder / "r.toml", "model = \"x\"\nbatch = 0\n");
  EXPECT_EQ(message_of<UserError>([&] { read_recipe(folder / "r.toml"); }),
            "'" + (folder / "r.toml").string() + "', line 2: batch takes a whole number from 1 to 1000000000, not 0");
}

}  // namespace

}  // namespace snug::settings
