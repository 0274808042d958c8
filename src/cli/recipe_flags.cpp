#include "cli/recipe_flags.h"

#include <algorithm>
#include <charconv>

#include "api/prepare.h"
#include "base/counted.h"
#include "base/error.h"
#include "settings/recipe_keys.h"

namespace snug::cli {

namespace {

void take(std::string_view key, const std::optional<std::string>& text, std::optional<std::int64_t>& target) {
  if (text) target = count_of(key, *text);
}
void take(std::string_view key, const std::optional<std::string>& text, std::int64_t& target) {
  if (text) target = count_of(key, *text);
}
void take(std::string_view key, const std::optional<std::string>& text, std::optional<double>& target) {
  if (text) target = number_of(key, *text);
}
void take(std::string_view key, const std::optional<std::string>& text, double& target) {
  if (text) target = number_of(key, *text);
}

void take_optimizer(const Flags& flags, settings::OptimizerRecipe& optimizer) {
  take("optimizer.learning_rate", flags.learning_rate, optimizer.learning_rate);
  take("optimizer.momentum", flags.momentum, optimizer.momentum);
  take("optimizer.weight_decay", flags.weight_decay, optimizer.weight_decay);
  if (const auto nesterov = parse_nesterov(flags)) optimizer.nesterov = *nesterov;
  if (flags.drop_gradients) optimizer.drop_gradients = true;
  if (const auto bits = parse_momentum_bits(flags)) optimizer.momentum_bits = *bits;
  take("optimizer.clip_norm", flags.clip_norm, optimizer.clip_norm);
}

void take_schedule(const Flags& flags, settings::ScheduleRecipe& schedule) {
  using Kind = settings::ScheduleRecipe::Kind;
  if (flags.schedule) {
    if (*flags.schedule == "constant") {
      schedule.kind = Kind::constant;
    } else if (*flags.schedule == "step") {
      schedule.kind = Kind::step;
    } else if (*flags.schedule == "cosine") {
      schedule.kind = Kind::cosine;
    } else {
      throw_user_error("--schedule is constant, step or cosine, not '{}'", *flags.schedule);
    }
    if (schedule.kind != Kind::step) schedule.milestones.clear();  // a recipe's go with its schedule
  }
  take("schedule.warmup_steps", flags.warmup_steps, schedule.warmup_steps);
  if (flags.milestones) {
    schedule.milestones.clear();
    for (const std::string& epoch : parse_list("--milestones", "numbers", *flags.milestones)) {
      schedule.milestones.push_back(number_of("schedule.milestones", epoch));
    }
  }
  take("schedule.gamma", flags.gamma, schedule.gamma);
}

void take_length(const Flags& flags, settings::Recipe& recipe) {
  if (flags.epochs && flags.steps) throw UserError("--epochs and --steps both say how long; leave out one of them");
  if (flags.epochs) {
    take("epochs", flags.epochs, recipe.epochs);
    recipe.steps.reset();
  }
  if (flags.steps) {
    take("steps", flags.steps, recipe.steps);
    recipe.epochs.reset();
  }
}

}  // namespace

std::int64_t count_of(std::string_view key, std::string_view text) {
  const auto& range = settings::count_range(key);
  return parse_count(settings::recipe_key(key).flag, text, range.least, range.most);
}

double number_of(std::string_view key, std::string_view text) {
  const auto& range = settings::number_range(key);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !range.holds(value)) {
    throw_user_error("{} {}, not '{}'", settings::recipe_key(key).flag, describe(range), text);
  }
  return value;
}

bool names_recipe(const Flags& flags) { return flags.model && flags.model->ends_with(".toml"); }

settings::Recipe recipe_of(const Flags& flags) {
  if (!flags.model) {
    throw_user_error("'snug {0}' needs a model or a recipe, as in 'snug {0} small-cnn' (see 'snug {0} --help')", flags.command);
  }
  settings::Recipe recipe;
  if (names_recipe(flags)) {
    recipe = settings::read_recipe(*flags.model);
  } else {
    recipe.model = *flags.model;
  }
  if (flags.data) recipe.data = *flags.data;
  take("batch", flags.batch, recipe.batch);
  take("microbatch", flags.microbatch, recipe.microbatch);
  take("min_microbatch", flags.min_microbatch, recipe.min_microbatch);
  take("statistics_group", flags.statistics_group, recipe.statistics_group);
  take("classes", flags.classes, recipe.classes);
  take("image_size", flags.image_size, recipe.image_size);
  take("eval_every", flags.eval_every, recipe.eval_every);
  take("snapshot_every", flags.snapshot_every, recipe.snapshot_every);
  take("keep", flags.keep, recipe.keep);
  take("threads", flags.threads, recipe.threads);
  if (flags.seed) recipe.seed = static_cast<std::uint64_t>(count_of("seed", *flags.seed));
  if (flags.precision) recipe.precision = *flags.precision;
  take("sparse.nonzero", flags.nonzero, recipe.sparse.nonzero);
  if (flags.rounding) recipe.rounding = *flags.rounding;
  if (flags.checkpoint) recipe.checkpoint = *flags.checkpoint;
  if (const auto bits = parse_compress(flags)) recipe.compress = bits;
  if (flags.device) recipe.device = *flags.device;
  if (flags.budget) recipe.budget_bytes = parse_size("--budget", *flags.budget);
  if (flags.workspace_limit) recipe.workspace_limit = parse_size("--workspace-limit", *flags.workspace_limit);
  if (flags.allow) recipe.allow = parse_list("--allow", "words", *flags.allow);
  // What is given is obeyed: there is nothing left to choose.
  if (flags.precision || recipe.precision != "fp32") std::erase(recipe.allow, "precision");
  if (recipe.sparse.nonzero) std::erase(recipe.allow, "sparse");
  if (recipe.compress) std::erase(recipe.allow, "compressed");
  if (recipe.allow.empty()) recipe.allow = settings::Recipe().allow;
  if (recipe.device != "cpu" && std::ranges::find(recipe.allow, "compressed") != recipe.allow.end()) {
    throw_user_error("'{}' cannot keep activations in few bits so far; leave compressed out of --allow, or use --device cpu",
                     recipe.device);
  }
  if (!flags.frozen.empty()) recipe.freeze = flags.frozen;
  if (flags.init) recipe.init = *flags.init;
  if (flags.init_prefix) recipe.init_prefix = *flags.init_prefix;
  if (flags.init_partial) recipe.init_partial = true;
  if (flags.augment) {
    if (*flags.augment != "yes" && *flags.augment != "no") throw_user_error("--augment is yes or no, not '{}'", *flags.augment);
    recipe.augment = *flags.augment == "yes";
  }
  take_length(flags, recipe);
  take_optimizer(flags, recipe.optimizer);
  take_schedule(flags, recipe.schedule);
  settings::check_recipe(recipe, settings::SaidBy::flags);
  return recipe;
}

FitRequest request_of(const Flags& flags, const settings::Recipe& recipe, const data::Description& data, CostTable costs) {
  FitRequest request = fit_request(recipe, data, std::move(costs));
  if (flags.precision) request.in_16_bits.reset();
  return request;
}

std::vector<std::string> unkept_limits(const FitRequest& request, const Plan& plan) {
  if (!request.checkpoint || request.checkpoint->limit == Bytes(0)) return {};
  Bytes taken;
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.program.sections[i].kind == SectionKind::micro) taken = plan.sections[i].height;
  }
  if (taken <= request.checkpoint->limit) return {};
  return {fmt::format(
      "checkpoint {} asks for at most {} beside the states; the least that was found is {} bytes ({}), which this plan takes",
      to_string(*request.checkpoint), counted(request.checkpoint->limit.count(), "byte"), taken.count(), format_bytes(taken))};
}

void refuse_flags_on_resume(const Flags& flags) {
  const std::pair<std::string_view, const std::optional<std::string>*> fixed[] = {
      {"a model", &flags.model},
      {"--batch", &flags.batch},
      {"--microbatch", &flags.microbatch},
      {"--min-microbatch", &flags.min_microbatch},
      {"--statistics-group", &flags.statistics_group},
      {"--budget", &flags.budget},
      {"--allow", &flags.allow},
      {"--workspace-limit", &flags.workspace_limit},
      {"--plan", &flags.plan},
      {"--classes", &flags.classes},
      {"--image-size", &flags.image_size},
      {"--device", &flags.device},
      {"--threads", &flags.threads},
      {"--precision", &flags.precision},
      {"--nonzero", &flags.nonzero},
      {"--rounding", &flags.rounding},
      {"--checkpoint", &flags.checkpoint},
      {"--compress", &flags.compress},
      {"--momentum-bits", &flags.momentum_bits},
      {"--nesterov", &flags.nesterov},
      {"--epochs", &flags.epochs},
      {"--steps", &flags.steps},
      {"--seed", &flags.seed},
      {"--learning-rate", &flags.learning_rate},
      {"--momentum", &flags.momentum},
      {"--weight-decay", &flags.weight_decay},
      {"--clip-norm", &flags.clip_norm},
      {"--schedule", &flags.schedule},
      {"--warmup-steps", &flags.warmup_steps},
      {"--milestones", &flags.milestones},
      {"--gamma", &flags.gamma},
      {"--augment", &flags.augment},
      {"--init", &flags.init},
      {"--init-prefix", &flags.init_prefix},
      {"--eval-every", &flags.eval_every},
      {"--snapshot-every", &flags.snapshot_every},
      {"--keep", &flags.keep},
  };
  for (const auto& [name, value] : fixed) {
    if (*value) throw_user_error("a resumed run follows recipe.toml in its folder; leave out {}", name);
  }
  if (flags.init_partial) throw UserError("a resumed run follows recipe.toml in its folder; leave out --init-partial");
  if (flags.drop_gradients) throw UserError("a resumed run follows recipe.toml in its folder; leave out --drop-gradients");
  if (!flags.frozen.empty()) throw UserError("a resumed run follows recipe.toml in its folder; leave out --freeze");
}

void refuse_other_run(const settings::Recipe& made_with, const settings::Recipe& now) {
  settings::Recipe expected = made_with;
  expected.epochs = now.epochs;
  expected.steps = now.steps;
  expected.eval_every = now.eval_every;
  expected.snapshot_every = now.snapshot_every;
  expected.keep = now.keep;
  expected.data = now.data;  // it may have moved; what is in it is compared by its record
  expected.optimizer.learning_rate = now.optimizer.learning_rate;
  expected.schedule = now.schedule;
  if (expected != now) {
    throw UserError(
        "recipe.toml asks for another run than the one its folder holds; when a run goes on, only its epochs or steps, learning "
        "rate, "
        "schedule, eval_every, snapshot_every and keep can be changed");
  }
}

}  // namespace snug::cli
