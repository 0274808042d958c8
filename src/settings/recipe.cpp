#include "settings/recipe.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "io/file_io.h"
#include "plan/allowance.h"
#include "settings/knobs.h"
#include "settings/optimizer.h"
#include "settings/recipe_table.h"

namespace snug::settings {

namespace {

constexpr std::uint64_t kMostRecipeBytes = 1'000'000;

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
  std::string name(std::string_view key) const { return std::string(name_of(knob(key), said_by_)); }
  // How a user of a recipe, or of flags, would say something.
  std::string say(std::string_view in_recipe, std::string_view in_flags) const {
    return std::string(said_by_ == SaidBy::flags ? in_flags : in_recipe);
  }

  void require(bool holds, std::string_view key, std::string sentence) {
    if (!holds && !complaint) complaint = {std::string(key), std::move(sentence)};
  }
  void rising(std::string_view key, const std::vector<double>& values) {
    const bool rises = std::ranges::adjacent_find(values, std::greater_equal<>()) == values.end();
    require(rises, key, "must increase");
  }

 private:
  SaidBy said_by_;
};

// Where the recipe does not say which, it is the model that decides whether all settings are the optimizer's.
void check_optimizer(const Recipe& recipe, SaidBy said_by, Checker& check) {
  const std::string kind = optimizer_by_settings(recipe);
  if (kind.empty()) return;
  if (const auto objection = objection_to_optimizer(recipe, kind, said_by))
    check.require(false, objection->key, objection->sentence);
}

// What another device than the CPU does not do so far, told or allowed.
void check_device(const Recipe& recipe, Checker& check) {
  if (recipe.device == "cpu") return;
  Recipe done = recipe;
  done.methods = normalized(recipe.methods);
  for (const Knob& knob : knobs()) {
    if (!knob.cpu_alone) continue;
    check.require(is_same(knob, done, Recipe()), knob.key,
                  fmt::format("is for the CPU so far; leave it out, or use {}", check.say("device = \"cpu\"", "--device cpu")));
    if (!knob.is_chosen) continue;
    const std::string_view level = name_of(*knob.exactness);
    check.require(std::ranges::find(recipe.allow, level) == recipe.allow.end(), "allow",
                  fmt::format("names '{}', which is for the CPU so far; leave that out, or use {}", level,
                              check.say("device = \"cpu\"", "--device cpu")));
  }
}

void check_schedule(const ScheduleRecipe& schedule, Checker& check) {
  check.rising("schedule.milestones", schedule.milestones);
  const std::string step = check.say("kind = \"step\"", "--schedule step");
  if (schedule.kind == "step") {
    check.require(!schedule.milestones.empty(), "schedule.milestones",
                  fmt::format("must name at least one epoch with {}, as in {}", step,
                              check.say("milestones = [60, 120]", "--milestones 60,120")));
  } else {
    check.require(schedule.milestones.empty(), "schedule.milestones",
                  fmt::format("go only with {}; add that, or leave them out", step));
  }
  const std::string warmup = check.say("warmup_steps = 4000", "--warmup-steps 4000");
  check.require(schedule.kind != "inverse-sqrt" || schedule.warmup_steps > 0, "schedule.warmup_steps",
                fmt::format("must say from which step on the rate falls with {}, as in {}",
                            check.say("kind = \"inverse-sqrt\"", "--schedule inverse-sqrt"), warmup));
  check.require(schedule.warmup_from == 0 || schedule.warmup_steps > 0, "schedule.warmup_from",
                fmt::format("is about a warmup; say how long that is, as in {}, or leave it out", warmup));
}

void check_sparse(const SparseRecipe& sparse, const Methods& methods, Checker& check) {
  if (!methods.nonzero) {
    check.require(sparse == SparseRecipe{}, "sparse.nonzero", "is missing; say what share of the weights is stored, as in 0.3");
    return;
  }
  for (const double every : sparse.rewire_every) {
    check.require(every >= 0 && every <= 1e9 && every == std::floor(every), "sparse.rewire_every",
                  "takes whole numbers of steps, 0 for never");
  }
  check.rising("sparse.rewire_milestones", sparse.rewire_milestones);
  check.require(sparse.rewire_every.size() == sparse.rewire_milestones.size() + 1, "sparse.rewire_every",
                fmt::format("has {} where {} need {}", counted(sparse.rewire_every.size(), "number"),
                            counted(sparse.rewire_milestones.size(), "milestone"), sparse.rewire_milestones.size() + 1));
}

std::optional<Complaint> find_complaint(const Recipe& recipe, SaidBy said_by) {
  Checker check(said_by);
  for (const Knob& knob : knobs()) {
    if (const auto objection = objection_to(knob, recipe)) check.require(false, knob.key, *objection);
  }
  const std::int64_t microbatch = recipe.methods.microbatch.value_or(1);
  const DType precision = recipe.methods.precision.value_or(DType::f32);
  check.require(microbatch <= recipe.batch, "microbatch",
                fmt::format("of {} is more than the batch of {}; use at most that", microbatch, recipe.batch));
  check.require(!recipe.min_microbatch || !recipe.methods.statistics_group, "min_microbatch",
                fmt::format("has no effect beside {}, which keeps statistics the same however the batch is split; leave out one",
                            check.name("statistics_group")));
  check.require(!recipe.rounding || precision != DType::f32 || recipe.methods.moment_bits == 16, "rounding",
                "is about updates of 16 bits; leave it out with fp32");
  check.require(!recipe.loss_scale_growth || precision == DType::f16, "loss_scale_growth",
                fmt::format("goes only with {}", check.say("precision = \"fp16\"", "--precision fp16")));
  if (const auto objection = objection_to_allowance(recipe.allow)) check.require(false, "allow", *objection);
  check.require(!recipe.epochs || !recipe.steps, "steps", "cannot stand beside epochs; give one of the two");
  for (const std::string_view key : {"init_prefix", "init_partial", "init_strict"}) {
    check.require(is_same(knob(key), recipe, Recipe()) || recipe.init, key,
                  fmt::format("is about the weights that {} names; give that, or leave it out", check.name("init")));
  }
  check.require(!recipe.init_strict || !recipe.init_partial, "init_strict",
                fmt::format("and {} contradict one another; leave out one of them", check.name("init_partial")));
  check_device(recipe, check);
  check_optimizer(recipe, said_by, check);
  check_schedule(recipe.schedule, check);
  check_sparse(recipe.sparse, recipe.methods, check);
  // In the words of flags the key is one, too.
  if (check.complaint && said_by == SaidBy::flags) check.complaint->key = check.name(check.complaint->key);
  return check.complaint;
}

}  // namespace

Recipe parse_recipe(std::string_view text, std::string_view source) {
  RecipeTable root(text, std::string(source));
  Recipe recipe;
  root.required_text("model", recipe.model);
  std::map<std::string, RecipeTable> tables;
  for (const Knob& knob : knobs()) {
    const auto& [table, name] = parts_of(knob);
    if (!table.empty() && !tables.contains(table)) tables.emplace(table, root.table(table));
    RecipeTable& within = table.empty() ? root : tables.at(table);
    std::visit([&, &key = name](auto* value) { within.read(key, *value); }, knob.slot(recipe));
  }
  root.refuse_unknown_keys();
  for (const auto& [name, table] : tables) table.refuse_unknown_keys();
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
  std::string last_table;
  for (const Knob& knob : knobs()) {
    const auto& [table, name] = parts_of(knob);
    if (!is_told(knob, recipe) || (knob.is_quiet && is_same(knob, recipe, Recipe()))) continue;
    if (table == "sparse" && !recipe.methods.nonzero) continue;
    if (table != last_table) text += fmt::format("\n[{}]\n", table);
    last_table = table;
    text += fmt::format("{} = {}\n", name, print_value(knob, recipe));
  }
  return text;
}

}  // namespace snug::settings
