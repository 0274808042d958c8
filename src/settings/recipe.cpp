#include "settings/recipe.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "io/file_io.h"
#include "plan/allowance.h"
#include "settings/recipe_keys.h"
#include "settings/recipe_table.h"

namespace snug::settings {

namespace {

constexpr std::uint64_t kMostRecipeBytes = 1'000'000;
constexpr std::array<std::string_view, 3> kPrecisions{"fp32", "fp16", "bf16"};
constexpr std::array<std::string_view, 2> kRoundings{"nearest", "stochastic"};
constexpr std::array<std::string_view, 2> kDevices{"cpu", "cuda"};
constexpr std::array<std::string_view, 3> kSparseMethods{"fixed", "set", "dsr"};
constexpr std::array<std::string_view, 3> kSchedules{"constant", "step", "cosine"};

// What is wrong with a recipe's values: the key, as in "optimizer.momentum", and a sentence about it.
struct Complaint {
  std::string key;
  std::string sentence;
};

// Collects the first complaint, in the words of whoever said it: of a recipe or of flags.
class Checker {
 public:
  explicit Checker(SaidBy said_by) : said_by_(said_by) {}

  std::optional<Complaint> complaint;

  // The key or its flag.
  std::string name(std::string_view key) const {
    const RecipeKey& found = recipe_key(key);
    return std::string(said_by_ == SaidBy::flags && !found.flag.empty() ? found.flag : found.name);
  }
  // How a user of a recipe, or of flags, would say something.
  std::string say(std::string_view in_recipe, std::string_view in_flags) const {
    return std::string(said_by_ == SaidBy::flags ? in_flags : in_recipe);
  }

  void require(bool holds, std::string_view key, std::string sentence) {
    if (!holds && !complaint) complaint = {std::string(key), std::move(sentence)};
  }
  void text(std::string_view key, const std::string& value) {
    require(!value.empty(), key, "must not be empty");
    try {
      nlohmann::json(value).dump();
    } catch (const nlohmann::json::exception&) {
      require(false, key, "is not UTF-8");
    }
  }
  void count(std::string_view key, std::optional<std::int64_t> value) {
    const CountRange& range = count_range(key);
    if (value) require(range.holds(*value), key, fmt::format("{}, not {}", describe(range), *value));
  }
  void number(std::string_view key, std::optional<double> value) {
    const NumberRange& range = number_range(key);
    if (value) require(range.holds(*value), key, fmt::format("{}, not {}", describe(range), *value));
  }
  // Each within the key's range, and each above the one before it.
  void epochs_that_increase(std::string_view key, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      number(key, values[i]);
      require(i == 0 || values[i] > values[i - 1], key, "must increase");
    }
  }
  void choice(std::string_view key, std::string_view value, std::span<const std::string_view> possible) {
    require(std::find(possible.begin(), possible.end(), value) != possible.end(), key,
            fmt::format("is '{}'; it can be {}", value, fmt::join(possible, ", ")));
  }

 private:
  SaidBy said_by_;
};

void check_optimizer(const OptimizerRecipe& optimizer, Checker& check) {
  check.number("optimizer.learning_rate", optimizer.learning_rate);
  check.number("optimizer.momentum", optimizer.momentum);
  check.number("optimizer.weight_decay", optimizer.weight_decay);
  check.require(
      !optimizer.nesterov || optimizer.momentum > 0, "optimizer.momentum",
      fmt::format("of 0 goes only with {}; say that, or use a momentum above 0", check.say("nesterov = false", "--nesterov no")));
  check.require(optimizer.momentum_bits == 32 || optimizer.momentum_bits == 8, "optimizer.momentum_bits",
                fmt::format("takes 8 or 32, not {}", optimizer.momentum_bits));
  check.require(optimizer.momentum_bits == 32 || optimizer.momentum > 0, "optimizer.momentum_bits",
                "needs a momentum above 0; set one or leave it out");
  check.number("optimizer.clip_norm", optimizer.clip_norm);
}

void check_schedule(const ScheduleRecipe& schedule, Checker& check) {
  check.count("schedule.warmup_steps", schedule.warmup_steps);
  check.number("schedule.gamma", schedule.gamma);
  check.number("schedule.final", schedule.final);
  check.epochs_that_increase("schedule.milestones", schedule.milestones);
  const std::string step = check.say("kind = \"step\"", "--schedule step");
  if (schedule.kind == ScheduleRecipe::Kind::step) {
    check.require(!schedule.milestones.empty(), "schedule.milestones",
                  fmt::format("must name at least one epoch with {}, as in {}", step,
                              check.say("milestones = [60, 120]", "--milestones 60,120")));
  } else {
    check.require(schedule.milestones.empty(), "schedule.milestones",
                  fmt::format("go only with {}; add that, or leave them out", step));
  }
}

void check_sparse(const SparseRecipe& sparse, Checker& check) {
  if (!sparse.nonzero) {
    check.require(sparse == SparseRecipe{}, "sparse.nonzero", "is missing; say what share of the weights is stored, as in 0.3");
    return;
  }
  check.number("sparse.nonzero", sparse.nonzero);
  check.choice("sparse.method", sparse.method, kSparseMethods);
  check.number("sparse.rewire_fraction", sparse.rewire_fraction);
  check.number("sparse.threshold", sparse.threshold);
  for (const double every : sparse.rewire_every) {
    check.require(every >= 0 && every <= 1e9 && every == std::floor(every), "sparse.rewire_every",
                  "takes whole numbers of steps, 0 for never");
  }
  check.epochs_that_increase("sparse.rewire_milestones", sparse.rewire_milestones);
  check.require(sparse.rewire_every.size() == sparse.rewire_milestones.size() + 1, "sparse.rewire_every",
                fmt::format("has {} where {} need {}", counted(sparse.rewire_every.size(), "number"),
                            counted(sparse.rewire_milestones.size(), "milestone"), sparse.rewire_milestones.size() + 1));
}

std::optional<Complaint> find_complaint(const Recipe& recipe, SaidBy said_by) {
  Checker check(said_by);
  check.text("model", recipe.model);
  check.count("classes", recipe.classes);
  check.count("image_size", recipe.image_size);
  check.text("data", recipe.data);
  check.count("batch", recipe.batch);
  check.count("microbatch", recipe.microbatch);
  check.require(recipe.microbatch.value_or(1) <= recipe.batch, "microbatch",
                fmt::format("of {} is more than the batch of {}; use at most that", recipe.microbatch.value_or(1), recipe.batch));
  check.count("min_microbatch", recipe.min_microbatch);
  check.count("statistics_group", recipe.statistics_group);
  check.require(!recipe.min_microbatch || !recipe.statistics_group, "min_microbatch",
                fmt::format("has no effect beside {}, which keeps statistics the same however the batch is split; leave out one",
                            check.name("statistics_group")));
  check.choice("precision", recipe.precision, kPrecisions);
  if (recipe.rounding) {
    check.choice("rounding", *recipe.rounding, kRoundings);
    check.require(recipe.precision != "fp32", "rounding", "is about updates of 16 bits; leave it out with fp32");
  }
  check.count("loss_scale_growth", recipe.loss_scale_growth);
  check.require(!recipe.loss_scale_growth || recipe.precision == "fp16", "loss_scale_growth",
                fmt::format("goes only with {}", check.say("precision = \"fp16\"", "--precision fp16")));
  if (recipe.checkpoint) check.text("checkpoint", *recipe.checkpoint);
  if (recipe.compress) {
    check.require(*recipe.compress == 8 || *recipe.compress == 4 || *recipe.compress == 2, "compress",
                  fmt::format("takes 8, 4 or 2 bits, not {}", *recipe.compress));
  }
  if (recipe.budget_bytes) check.require(*recipe.budget_bytes > Bytes(0), "budget", "must be more than 0 bytes");
  if (const auto objection = objection_to_allowance(recipe.allow)) check.require(false, "allow", *objection);
  check.choice("device", recipe.device, kDevices);
  if (recipe.threads != 0) check.count("threads", recipe.threads);
  check.require(recipe.seed <= static_cast<std::uint64_t>(count_range("seed").most), "seed", "must be below 2^63");
  check.count("epochs", recipe.epochs);
  check.count("steps", recipe.steps);
  check.require(!recipe.epochs || !recipe.steps, "steps", "cannot stand beside epochs; give one of the two");
  check.count("eval_every", recipe.eval_every);
  check.count("snapshot_every", recipe.snapshot_every);
  check.count("keep", recipe.keep);
  for (const std::string& prefix : recipe.freeze) check.text("freeze", prefix);
  if (recipe.init) check.text("init", *recipe.init);
  if (recipe.init_prefix) check.text("init_prefix", *recipe.init_prefix);
  for (const auto& [key, is_given] :
       {std::pair{"init_prefix", recipe.init_prefix.has_value()}, {"init_partial", recipe.init_partial}}) {
    check.require(!is_given || recipe.init, key,
                  fmt::format("is about the weights that {} names; give that, or leave it out", check.name("init")));
  }
  check_optimizer(recipe.optimizer, check);
  check_schedule(recipe.schedule, check);
  check_sparse(recipe.sparse, check);
  // In the words of flags the key is one, too.
  if (check.complaint && said_by == SaidBy::flags) check.complaint->key = check.name(check.complaint->key);
  return check.complaint;
}

std::string toml_text(const std::string& text) {
  // A JSON text is a TOML text but for one character, which JSON lets stand as it is.
  std::string quoted;
  for (const char c : nlohmann::json(text).dump()) quoted += c == 0x7F ? std::string("\\u007F") : std::string(1, c);
  return quoted;
}

std::string toml_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts) quoted.push_back(toml_text(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

// The largest unit that says it exactly.
std::string toml_bytes(Bytes size) {
  for (const auto& [unit, factor] : {std::pair{"MB", 1'000'000}, std::pair{"KB", 1000}}) {
    if (size.count() % factor == 0) return fmt::format("\"{}{}\"", size.count() / factor, unit);
  }
  return fmt::format("\"{}B\"", size.count());
}

}  // namespace

Recipe parse_recipe(std::string_view text, std::string_view source) {
  RecipeTable root(text, std::string(source));
  Recipe recipe;
  root.required_text("model", recipe.model);
  root.count("classes", recipe.classes);
  root.count("image_size", recipe.image_size);
  root.text("data", recipe.data);
  root.flag("augment", recipe.augment);
  root.count("batch", recipe.batch);
  root.count("microbatch", recipe.microbatch);
  root.count("min_microbatch", recipe.min_microbatch);
  root.count("statistics_group", recipe.statistics_group);
  root.text("precision", recipe.precision);
  root.text("rounding", recipe.rounding);
  root.count("loss_scale_growth", recipe.loss_scale_growth);
  root.text("checkpoint", recipe.checkpoint);
  root.count("compress", recipe.compress);
  root.bytes("budget", recipe.budget_bytes);
  root.bytes("workspace_limit", recipe.workspace_limit);
  root.texts("allow", recipe.allow);
  root.text("device", recipe.device);
  root.count("threads", recipe.threads);
  root.count("seed", recipe.seed);
  root.count("epochs", recipe.epochs);
  root.count("steps", recipe.steps);
  root.count("eval_every", recipe.eval_every);
  root.count("snapshot_every", recipe.snapshot_every);
  root.count("keep", recipe.keep);
  root.texts("freeze", recipe.freeze);
  root.text("init", recipe.init);
  root.text("init_prefix", recipe.init_prefix);
  root.flag("init_partial", recipe.init_partial);

  RecipeTable optimizer = root.table("optimizer");
  optimizer.number("learning_rate", recipe.optimizer.learning_rate);
  optimizer.number("momentum", recipe.optimizer.momentum);
  optimizer.flag("nesterov", recipe.optimizer.nesterov);
  optimizer.number("weight_decay", recipe.optimizer.weight_decay);
  optimizer.number("clip_norm", recipe.optimizer.clip_norm);
  optimizer.count("momentum_bits", recipe.optimizer.momentum_bits);
  optimizer.flag("drop_gradients", recipe.optimizer.drop_gradients);

  RecipeTable schedule = root.table("schedule");
  std::string kind(kSchedules[0]);
  schedule.text("kind", kind);
  const auto found = std::find(kSchedules.begin(), kSchedules.end(), kind);
  if (found == kSchedules.end())
    root.refuse("schedule.kind", fmt::format("is '{}'; it can be {}", kind, fmt::join(kSchedules, ", ")));
  recipe.schedule.kind = static_cast<ScheduleRecipe::Kind>(found - kSchedules.begin());
  schedule.count("warmup_steps", recipe.schedule.warmup_steps);
  schedule.numbers("milestones", recipe.schedule.milestones);
  schedule.number("gamma", recipe.schedule.gamma);
  schedule.number("final", recipe.schedule.final);

  RecipeTable sparse = root.table("sparse");
  sparse.number("nonzero", recipe.sparse.nonzero);
  sparse.text("method", recipe.sparse.method);
  sparse.numbers("rewire_every", recipe.sparse.rewire_every);
  sparse.numbers("rewire_milestones", recipe.sparse.rewire_milestones);
  sparse.number("rewire_fraction", recipe.sparse.rewire_fraction);
  sparse.number("threshold", recipe.sparse.threshold);

  for (const RecipeTable* table : {&root, &optimizer, &schedule, &sparse}) table->refuse_unknown_keys();
  if (const auto complaint = find_complaint(recipe, SaidBy::recipe)) root.refuse(complaint->key, complaint->sentence);
  return recipe;
}

Recipe read_recipe(const std::filesystem::path& path) {
  return parse_recipe(io::read_text_file(path, kMostRecipeBytes), "'" + path.string() + "'");
}

void check_recipe(const Recipe& recipe, SaidBy said_by) {
  if (const auto complaint = find_complaint(recipe, said_by)) throw_user_error("{} {}", complaint->key, complaint->sentence);
}

std::string print_recipe(const Recipe& recipe) {
  check_recipe(recipe, SaidBy::recipe);
  std::string text;
  const auto line = [&](std::string_view key, const std::string& value) { text += fmt::format("{} = {}\n", key, value); };
  const auto number = [&](std::string_view key, auto value) { line(key, fmt::format("{}", value)); };
  const auto optional_number = [&](std::string_view key, const auto& value) {
    if (value) number(key, *value);
  };
  const auto optional_text = [&](std::string_view key, const std::optional<std::string>& value) {
    if (value) line(key, toml_text(*value));
  };
  line("model", toml_text(recipe.model));
  optional_number("classes", recipe.classes);
  optional_number("image_size", recipe.image_size);
  line("data", toml_text(recipe.data));
  if (recipe.augment) line("augment", *recipe.augment ? "true" : "false");
  number("batch", recipe.batch);
  optional_number("microbatch", recipe.microbatch);
  optional_number("min_microbatch", recipe.min_microbatch);
  optional_number("statistics_group", recipe.statistics_group);
  line("precision", toml_text(recipe.precision));
  optional_text("rounding", recipe.rounding);
  optional_number("loss_scale_growth", recipe.loss_scale_growth);
  optional_text("checkpoint", recipe.checkpoint);
  optional_number("compress", recipe.compress);
  if (recipe.budget_bytes) line("budget", toml_bytes(*recipe.budget_bytes));
  if (recipe.workspace_limit) line("workspace_limit", toml_bytes(*recipe.workspace_limit));
  line("allow", toml_texts(recipe.allow));
  line("device", toml_text(recipe.device));
  number("threads", recipe.threads);
  number("seed", recipe.seed);
  optional_number("epochs", recipe.epochs);
  optional_number("steps", recipe.steps);
  optional_number("eval_every", recipe.eval_every);
  optional_number("snapshot_every", recipe.snapshot_every);
  number("keep", recipe.keep);
  line("freeze", toml_texts(recipe.freeze));
  optional_text("init", recipe.init);
  optional_text("init_prefix", recipe.init_prefix);
  if (recipe.init_partial) line("init_partial", "true");

  text += "\n[optimizer]\n";
  number("learning_rate", recipe.optimizer.learning_rate);
  number("momentum", recipe.optimizer.momentum);
  line("nesterov", recipe.optimizer.nesterov ? "true" : "false");
  number("weight_decay", recipe.optimizer.weight_decay);
  optional_number("clip_norm", recipe.optimizer.clip_norm);
  if (recipe.optimizer.drop_gradients) line("drop_gradients", "true");
  if (recipe.optimizer.momentum_bits != 32) number("momentum_bits", recipe.optimizer.momentum_bits);

  text += "\n[schedule]\n";
  line("kind", toml_text(std::string(kSchedules[static_cast<std::size_t>(recipe.schedule.kind)])));
  number("warmup_steps", recipe.schedule.warmup_steps);
  line("milestones", fmt::format("[{}]", fmt::join(recipe.schedule.milestones, ", ")));
  number("gamma", recipe.schedule.gamma);
  number("final", recipe.schedule.final);

  if (!recipe.sparse.nonzero) return text;
  text += "\n[sparse]\n";
  number("nonzero", *recipe.sparse.nonzero);
  line("method", toml_text(recipe.sparse.method));
  line("rewire_every", fmt::format("[{}]", fmt::join(recipe.sparse.rewire_every, ", ")));
  line("rewire_milestones", fmt::format("[{}]", fmt::join(recipe.sparse.rewire_milestones, ", ")));
  number("rewire_fraction", recipe.sparse.rewire_fraction);
  number("threshold", recipe.sparse.threshold);
  return text;
}

}  // namespace snug::settings
