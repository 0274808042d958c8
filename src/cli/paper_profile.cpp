// 'snug profile --accounting paper': the report's rules instead of a plan.
#include <array>
#include <utility>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/recipe_flags.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "report/paper_report.h"

namespace snug::cli {

namespace {

// What changes a plan and cannot change this: saying nothing would look as if it had been followed.
void refuse_flags_of_plans(const Flags& flags) {
  const std::array<std::pair<std::string_view, bool>, 16> given{{{"--budget", flags.budget.has_value()},
                                                                 {"--allow", flags.allow.has_value()},
                                                                 {"--min-microbatch", flags.min_microbatch.has_value()},
                                                                 {"--statistics-group", flags.statistics_group.has_value()},
                                                                 {"--compress", flags.compress.has_value()},
                                                                 {"--data", flags.data.has_value()},
                                                                 {"--device", flags.device.has_value()},
                                                                 {"--momentum", flags.momentum.has_value()},
                                                                 {"--clip-norm", flags.clip_norm.has_value()},
                                                                 {"--momentum-bits", flags.momentum_bits.has_value()},
                                                                 {"--nesterov", flags.nesterov.has_value()},
                                                                 {"--drop-gradients", flags.drop_gradients},
                                                                 {"--threads", flags.threads.has_value()},
                                                                 {"--workspace-limit", flags.workspace_limit.has_value()},
                                                                 {"--disable-pass", !flags.disabled_passes.empty()},
                                                                 {"--enable-pass", !flags.enabled_passes.empty()}}};
  for (const auto& [flag, is_given] : given) {
    if (is_given) throw_user_error("{} is about plans, and --accounting paper makes none; leave one of them out", flag);
  }
}

std::int64_t value_bytes(const std::string& precision) {
  if (precision == "fp32") return 4;
  if (precision == "fp16") return 2;
  throw_user_error("--precision '{}' is not in the report; use fp32 or fp16", precision);
}

// Those of the report's figures, and one of each kind.
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
  const Examples examples = examples_of(flags);
  const std::string precision = flags.precision.value_or("fp32");
  const paper::Strategy strategy = paper::parse_strategy(flags.checkpoint.value_or("none"));
  const paper::Options options{.value_bytes = value_bytes(precision),
                               .nonzero = flags.nonzero ? number_of("sparse.nonzero", *flags.nonzero) : 1.0};
  const auto build = [&](std::int64_t batch) {
    Program model =
        frontend::build_zoo_model(*flags.model, {.batch = batch,
                                                 .classes = flags.classes ? count_of("classes", *flags.classes) : 0,
                                                 .image_size = flags.image_size ? count_of("image_size", *flags.image_size) : 0});
    frontend::freeze(model, flags.frozen);
    return model;
  };
  const std::int64_t microbatch = examples.microbatch.value_or(examples.batch);
  const Program model = build(microbatch);
  report::PaperReport report{.model = model.name,
                             .parameters = frontend::parameter_count(model),
                             .batch = examples.batch,
                             .microbatch = microbatch,
                             .precision = precision,
                             .nonzero = options.nonzero,
                             .asked = paper::account(model, strategy, options),
                             .strategies = {},
                             .baseline_bytes = paper::account(build(examples.batch), {}).total()};
  for (const paper::Strategy& one : strategies_to_compare(model, strategy)) {
    report.strategies.push_back(paper::account(model, one, options));
  }
  if (flags.json) return write_json(report::paper_json(report));
  write_out(report::paper_text(report));
}

}  // namespace snug::cli
