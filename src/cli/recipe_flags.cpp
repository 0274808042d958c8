#include "cli/recipe_flags.h"

#include <algorithm>
#include <limits>

#include "api/prepare.h"
#include "base/error.h"

namespace snug::cli {

namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000'000;

void take_count(std::string_view flag, const std::optional<std::string>& text, std::int64_t least, std::int64_t most,
                std::optional<std::int64_t>& target) {
  if (text) target = parse_count(flag, *text, least, most);
}

void take_optimizer(const Flags& flags, train::OptimizerRecipe& optimizer) {
  if (flags.learning_rate) optimizer.learning_rate = parse_number("--learning-rate", *flags.learning_rate, 0, 1e6);
  if (flags.momentum) optimizer.momentum = parse_number("--momentum", *flags.momentum, 0, 1);
  if (flags.weight_decay) optimizer.weight_decay = parse_number("--weight-decay", *flags.weight_decay, 0, 1e6);
  if (const auto nesterov = parse_nesterov(flags)) optimizer.nesterov = *nesterov;
  if (flags.drop_gradients) optimizer.drop_gradients = true;
  if (const auto bits = parse_momentum_bits(flags)) optimizer.momentum_bits = *bits;
  if (flags.clip_norm) optimizer.clip_norm = parse_number("--clip-norm", *flags.clip_norm, 1e-30, 1e30);
}

void take_schedule(const Flags& flags, train::ScheduleRecipe& schedule) {
  using Kind = train::ScheduleRecipe::Kind;
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
  }
  if (flags.warmup_steps) schedule.warmup_steps = parse_count("--warmup-steps", *flags.warmup_steps, 0, kMostSteps);
  if (flags.milestones) {
    schedule.milestones.clear();
    for (const std::string& epoch : parse_list("--milestones", *flags.milestones)) {
      schedule.milestones.push_back(parse_number("--milestones", epoch, 0, 1e9));
    }
  }
  if (flags.gamma) schedule.gamma = parse_number("--gamma", *flags.gamma, 0, 1e6);
}

void take_length(const Flags& flags, train::Recipe& recipe) {
  if (flags.epochs && flags.steps) throw UserError("--epochs and --steps both say how long; leave out one of them");
  if (flags.epochs) {
    recipe.epochs = parse_count("--epochs", *flags.epochs, 1, 1'000'000'000);
    recipe.steps.reset();
  }
  if (flags.steps) {
    recipe.steps = parse_count("--steps", *flags.steps, 1, kMostSteps);
    recipe.epochs.reset();
  }
}

}  // namespace

bool names_recipe(const Flags& flags) { return flags.model && flags.model->ends_with(".toml"); }

train::Recipe recipe_of(const Flags& flags) {
  if (!flags.model) {
    throw_user_error("'snug {0}' needs a model or a recipe, as in 'snug {0} small-cnn' (see 'snug {0} --help')", flags.command);
  }
  train::Recipe recipe;
  if (names_recipe(flags)) {
    recipe = train::read_recipe(*flags.model);
  } else {
    recipe.model = *flags.model;
  }
  if (flags.data) recipe.data = *flags.data;
  if (flags.batch) recipe.batch = parse_count("--batch", *flags.batch, 1, kMostExamples);
  take_count("--microbatch", flags.microbatch, 1, kMostExamples, recipe.microbatch);
  take_count("--min-microbatch", flags.min_microbatch, 1, kMostExamples, recipe.min_microbatch);
  take_count("--statistics-group", flags.statistics_group, 1, kMostExamples, recipe.statistics_group);
  take_count("--classes", flags.classes, 2, 10'000'000, recipe.classes);
  take_count("--image-size", flags.image_size, 1, 65'536, recipe.image_size);
  take_count("--eval-every", flags.eval_every, 1, kMostSteps, recipe.eval_every);
  take_count("--snapshot-every", flags.snapshot_every, 1, kMostSteps, recipe.snapshot_every);
  if (flags.keep) recipe.keep = parse_count("--keep", *flags.keep, 1, 1'000'000);
  if (flags.threads) recipe.threads = parse_count("--threads", *flags.threads, 1, 1024);
  if (flags.seed) {
    recipe.seed = static_cast<std::uint64_t>(parse_count("--seed", *flags.seed, 0, std::numeric_limits<std::int64_t>::max()));
  }
  if (flags.precision) recipe.precision = *flags.precision;
  if (flags.nonzero) recipe.sparse.nonzero = parse_number("--nonzero", *flags.nonzero, kLeastNonzero, 1);
  if (flags.rounding) recipe.rounding = *flags.rounding;
  if (flags.checkpoint) recipe.checkpoint = *flags.checkpoint;
  if (const auto bits = parse_compress(flags)) recipe.compress = bits;
  if (flags.device) recipe.device = *flags.device;
  if (flags.budget) recipe.budget_bytes = parse_size("--budget", *flags.budget);
  if (flags.workspace_limit) recipe.workspace_limit = parse_size("--workspace-limit", *flags.workspace_limit);
  if (flags.allow) recipe.allow = parse_list("--allow", *flags.allow);
  // What is given is obeyed: there is nothing left to choose.
  if (flags.precision || recipe.precision != "fp32") std::erase(recipe.allow, "precision");
  if (recipe.sparse.nonzero) std::erase(recipe.allow, "sparse");
  if (recipe.compress) std::erase(recipe.allow, "compressed");
  if (recipe.allow.empty()) recipe.allow = train::Recipe().allow;
  if (recipe.device != "cpu" && std::ranges::find(recipe.allow, "compressed") != recipe.allow.end()) {
    throw_user_error("'{}' cannot keep activations in few bits so far; leave compressed out of --allow, or use --device cpu",
                     recipe.device);
  }
  if (!flags.frozen.empty()) recipe.freeze = flags.frozen;
  if (flags.init) recipe.init = *flags.init;
  if (flags.augment) {
    if (*flags.augment != "yes" && *flags.augment != "no") throw_user_error("--augment is yes or no, not '{}'", *flags.augment);
    recipe.augment = *flags.augment == "yes";
  }
  take_length(flags, recipe);
  take_optimizer(flags, recipe.optimizer);
  take_schedule(flags, recipe.schedule);
  train::check_recipe(recipe);
  return recipe;
}

FitRequest request_of(const Flags& flags, const train::Recipe& recipe, const data::Description& data, CostTable costs) {
  FitRequest request = fit_request(recipe, data, std::move(costs));
  if (flags.precision) request.narrower.reset();
  return request;
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
      {"--eval-every", &flags.eval_every},
      {"--snapshot-every", &flags.snapshot_every},
      {"--keep", &flags.keep},
  };
  for (const auto& [name, value] : fixed) {
    if (*value) throw_user_error("a resumed run goes on as recipe.toml in its folder says; leave out {}", name);
  }
  if (flags.drop_gradients)
    throw UserError("a resumed run goes on as recipe.toml in its folder says; leave out --drop-gradients");
  if (!flags.frozen.empty()) throw UserError("a resumed run goes on as recipe.toml in its folder says; leave out --freeze");
}

void refuse_other_run(const train::Recipe& made_with, const train::Recipe& now) {
  train::Recipe expected = made_with;
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
