#include "cli/recipe_flags.h"

#include <algorithm>

#include "api/prepare.h"
#include "base/counted.h"
#include "base/error.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

// What one flag says of another knob than its own.
void reconcile(const Flags& flags, settings::Recipe& recipe) {
  if (flags.has("epochs") && flags.has("steps")) throw UserError("--epochs and --steps both say how long; leave out one of them");
  if (flags.has("epochs")) recipe.steps.reset();
  if (flags.has("steps")) recipe.epochs.reset();
  // A recipe's milestones go with its schedule.
  if (flags.has("schedule.kind") && recipe.schedule.kind != "step" && !flags.has("schedule.milestones"))
    recipe.schedule.milestones.clear();
}

void take_all(const Flags& flags, settings::Recipe& recipe) {
  for (const settings::Knob& knob : settings::knobs()) {
    if (const auto given = flags.knobs.find(knob.key); given != flags.knobs.end()) take(knob, given->second, recipe);
  }
  reconcile(flags, recipe);
}

// What is told is obeyed: there is nothing left to choose. Splitting the batch is no choice of another model.
void leave_no_choice(const Flags& flags, settings::Recipe& recipe) {
  for (const settings::Knob& knob : settings::knobs()) {
    if (!knob.is_chosen || *knob.exactness <= Exactness::microbatch) continue;
    if (flags.has(knob.key) || !is_same(knob, recipe, settings::Recipe())) std::erase(recipe.allow, name_of(*knob.exactness));
  }
  if (recipe.allow.empty()) recipe.allow = settings::Recipe().allow;
}

}  // namespace

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
  take_all(flags, recipe);
  leave_no_choice(flags, recipe);
  if (recipe.device != "cpu" && std::ranges::find(recipe.allow, "compressed") != recipe.allow.end()) {
    throw_user_error("'{}' cannot keep activations in few bits so far; leave compressed out of --allow, or use --device cpu",
                     recipe.device);
  }
  settings::check_recipe(recipe, settings::SaidBy::flags);
  return recipe;
}

std::vector<std::string> unkept_limits(const FitRequest& request, const Plan& plan) {
  const auto& checkpoint = request.given.checkpoint;
  if (!checkpoint || checkpoint->limit == Bytes(0)) return {};
  Bytes taken;
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.program.sections[i].kind == SectionKind::micro) taken = plan.sections[i].height;
  }
  if (taken <= checkpoint->limit) return {};
  return {fmt::format(
      "checkpoint {} asks for at most {} beside the states; the least that was found is {} bytes ({}), which this plan takes",
      to_string(*checkpoint), counted(checkpoint->limit.count(), "byte"), taken.count(), format_bytes(taken))};
}

settings::Recipe recipe_to_resume(const Flags& flags, settings::Recipe recipe) {
  constexpr std::string_view kFixed = "a resumed run follows recipe.toml in its folder; leave out {}";
  if (flags.model) throw_user_error(kFixed, "a model");
  if (flags.plan) throw_user_error(kFixed, "--plan");
  for (const settings::Knob& knob : settings::knobs()) {
    if (!knob.may_change && flags.has(knob.key)) throw_user_error(kFixed, knob.flag);
  }
  take_all(flags, recipe);
  settings::check_recipe(recipe, settings::SaidBy::flags);
  return recipe;
}

void refuse_other_run(const settings::Recipe& made_with, const settings::Recipe& now) {
  const auto value_of = [](const settings::Knob& knob, const settings::Recipe& recipe) {
    return is_told(knob, recipe) ? print_value(knob, recipe) : std::string("nothing");
  };
  for (const settings::Knob& knob : settings::knobs()) {
    if (knob.may_change || is_same(knob, made_with, now)) continue;
    throw_user_error(
        "recipe.toml asks for another run than the one its folder holds: {} is {}, and was {}; put it back, or train in "
        "another folder",
        knob.key, value_of(knob, now), value_of(knob, made_with));
  }
}

}  // namespace snug::cli
