// 'snug profile --accounting paper': the paper's rules instead of a plan.
#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/recipe_flags.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "report/paper_report.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

// What changes a plan and cannot change this: saying nothing would look as if it had been followed.
void refuse_flags_of_plans(const Flags& flags) {
  constexpr std::string_view kAboutPlans = "{} is about plans, and --accounting paper makes none; leave one of them out";
  for (const settings::Knob& knob : settings::knobs()) {
    if (flags.has(knob.key) && !includes(knob.offered, settings::Offered::paper)) throw_user_error(kAboutPlans, knob.flag);
  }
  if (!flags.disabled_passes.empty()) throw_user_error(kAboutPlans, "--disable-pass");
}

std::int64_t value_bytes(DType precision) {
  if (precision == DType::bf16) throw UserError("--precision 'bf16' is not in the paper; use fp32 or fp16");
  return precision == DType::f16 ? 2 : 4;
}

// Those of the paper's figures, and one of each kind.
std::vector<paper::Strategy> strategies_to_compare(const Program& model, const paper::Strategy& asked) {
  std::vector<std::string_view> names{"none", "no-bn", "every-4", "every-16"};
  if (paper::has_residual_units(model)) names.insert(names.end(), {"residual-1", "residual-2", "residual-1*", "residual-2*"});
  std::vector<paper::Strategy> strategies;
  bool has_asked = false;
  for (const std::string_view name : names) {
    strategies.push_back(paper::parse_strategy(name));
    has_asked = has_asked || strategies.back() == asked;
  }
  if (!has_asked) strategies.push_back(asked);
  return strategies;
}

}  // namespace

void run_paper_profile(const Flags& flags) {
  refuse_flags_of_plans(flags);
  if (names_recipe(flags)) {
    throw_user_error("--accounting paper takes a model and not a recipe such as '{}', most of which is about plans",
                     *flags.model);
  }
  examples_of(flags);  // says what is missing
  settings::Recipe recipe{.model = *flags.model};
  for (const auto& [key, texts] : flags.knobs) take(settings::knob(key), texts, recipe);
  const DType precision = recipe.methods.precision.value_or(DType::f32);
  const paper::Strategy strategy = paper::parse_strategy(to_string(recipe.methods.checkpoint.value_or(CheckpointStrategy{})));
  const paper::Options options{.value_bytes = value_bytes(precision), .nonzero = recipe.methods.nonzero.value_or(1)};
  const auto build = [&](std::int64_t batch) {
    Program model = frontend::build_zoo_model(
        recipe.model, {.batch = batch, .classes = recipe.classes.value_or(0), .image_size = recipe.image_size.value_or(0)});
    frontend::freeze(model, recipe.freeze);
    return model;
  };
  const std::int64_t microbatch = recipe.methods.microbatch.value_or(recipe.batch);
  const Program model = build(microbatch);
  report::PaperReport report{.model = model.name,
                             .parameters = frontend::parameter_count(model),
                             .batch = recipe.batch,
                             .microbatch = microbatch,
                             .precision = std::string(precision_name(precision)),
                             .nonzero = options.nonzero,
                             .asked = paper::account(model, strategy, options),
                             .strategies = {},
                             .baseline_bytes = paper::account(build(recipe.batch), {}).total()};
  for (const paper::Strategy& one : strategies_to_compare(model, strategy)) {
    report.strategies.push_back(paper::account(model, one, options));
  }
  if (flags.json) return write_json(report::paper_json(report));
  write_out(report::paper_text(report));
}

}  // namespace snug::cli
