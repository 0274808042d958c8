#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "api/costs.h"
#include "api/prepare.h"
#include "backends/cpu/cpu.h"
#include "base/error.h"
#include "base/threads.h"
#include "cli/output.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/explain.h"
#include "plan/fit.h"
#include "report/frontier.h"
#include "report/json.h"
#include "report/kernels.h"
#include "report/page.h"
#include "report/text.h"
#include "report/timeline.h"
#include "report/torch_snapshot.h"
#include "train/file_io.h"
#include "train/plan_file.h"

namespace snug::cli {

namespace {

// What the flags ask for, and its plan.
struct Planned {
  FitRequest request;
  Fit fit;
  Backend backend;
  report::Settings settings;
};

int asked_threads(const Flags& flags) {
  return flags.threads ? static_cast<int>(parse_count("--threads", *flags.threads, 1, 1024)) : 0;
}

void note(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

// As the flags say: read, or measured first.
Costs costs_of(const Flags& flags, const FitRequest& request, const Backend& backend) {
  Costs costs = flags.measure_costs ? find_costs_to_measure(flags.costs, backend) : find_costs(flags.costs, backend);
  if (!costs.note.empty()) note("snug: " + costs.note);
  if (flags.measure_costs) measure_costs(request, backend, costs, note);
  return costs;
}

Planned make_plan(const Flags& flags, const PassOptions& passes) {
  const auto [batch, microbatch] = examples_of(flags);
  const std::int64_t min_microbatch =
      flags.min_microbatch ? parse_count("--min-microbatch", *flags.min_microbatch, 1, kMostExamples) : 10;
  const std::int64_t group =
      flags.statistics_group ? parse_count("--statistics-group", *flags.statistics_group, 1, kMostExamples) : 0;
  const double nonzero = flags.nonzero ? parse_number("--nonzero", *flags.nonzero, kLeastNonzero, 1) : 1.0;
  const std::optional<Bytes> budget = flags.budget ? std::optional(parse_size("--budget", *flags.budget)) : std::nullopt;
  const std::optional<CheckpointStrategy> checkpoint =
      flags.checkpoint ? std::optional(parse_checkpoint_strategy(*flags.checkpoint)) : std::nullopt;
  const Allowance allowed = flags.allow ? parse_allowance(parse_list("--allow", *flags.allow)) : Allowance();
  const std::string precision = flags.precision.value_or("fp32");
  const int threads = thread_count(asked_threads(flags));
  const frontend::ZooOptions options{
      .classes = flags.classes ? parse_count("--classes", *flags.classes, 2, 10'000'000) : 0,
      .image_size = flags.image_size ? parse_count("--image-size", *flags.image_size, 1, 65'536) : 0,
      .statistics_group = group};

  Backend backend = backends::cpu_backend(threads);
  const std::optional<Bytes> workspace_limit =
      flags.workspace_limit ? std::optional(parse_size("--workspace-limit", *flags.workspace_limit)) : std::nullopt;
  const auto build = [name = *flags.model, frozen = flags.frozen, options](std::int64_t size, DType stored) {
    frontend::ZooOptions sized = options;
    sized.batch = size;
    sized.dtype = stored;
    Graph graph = frontend::build_zoo_model(name, sized);
    frontend::freeze(graph, frozen);
    return graph;
  };
  const auto sgd = [&](std::string_view of, const std::optional<std::string>& rounding) {
    SgdOptions sgd_options = sgd_for(of, rounding);
    sgd_options.nesterov = parse_nesterov(flags).value_or(true);
    sgd_options.momentum_bits = static_cast<int>(parse_momentum_bits(flags).value_or(32));
    return sgd_options;
  };
  const DType dtype = stored_as(precision, "cpu");
  std::optional<FitRequest::Narrower> narrower;
  if (!flags.precision) {
    const DType narrow = stored_as(narrower_precision("cpu"), "cpu");
    narrower = {.model = [build, narrow](std::int64_t size) { return build(size, narrow); },
                .sgd = sgd(narrower_precision("cpu"), std::nullopt)};
  }
  FitRequest request{.model = [build, dtype](std::int64_t size) { return build(size, dtype); },
                     .options = {.batch = batch,
                                 .sgd = sgd(precision, flags.rounding),
                                 .sparse = {.nonzero = nonzero},
                                 .compress_bits = static_cast<int>(parse_compress(flags).value_or(0)),
                                 .passes = passes,
                                 .workspace_limit = workspace_limit},
                     .budget = budget,
                     .microbatch = microbatch,
                     .checkpoint = checkpoint,
                     .min_microbatch = min_microbatch,
                     .statistics_group = group,
                     .allowed = allowed,
                     .narrower = std::move(narrower)};
  if (flags.drop_gradients) request.options.passes.enabled.emplace_back("drop_gradients");
  const Costs costs = costs_of(flags, request, backend);
  request.options.costs = costs.table();
  Fit found = fit(request, backend);
  report::Settings settings{.precision = found.point.narrowed ? std::string(narrower_precision("cpu")) : precision,
                            .nonzero = nonzero,
                            .checkpoint = to_string(found.point.checkpoint),
                            .statistics_group = group,
                            .budget = budget,
                            .backend = std::string(backend.name),
                            .threads = threads,
                            .predicted_step_seconds = predict_step_seconds(costs, found.plan, backend),
                            .costs = describe_source(costs)};
  return {.request = std::move(request), .fit = std::move(found), .backend = std::move(backend), .settings = std::move(settings)};
}

void write_json(const nlohmann::ordered_json& json) { write_out(json.dump() + "\n"); }

void refuse_beside_dump(const Flags& flags) {
  const std::array<std::pair<bool, std::string_view>, 5> others{{{flags.json, "--json"},
                                                                 {flags.kernels, "--kernels"},
                                                                 {flags.explain, "--explain"},
                                                                 {flags.html.has_value(), "--html"},
                                                                 {flags.torch_snapshot.has_value(), "--torch-snapshot"}}};
  for (const auto& [given, name] : others) {
    if (given) throw_user_error("--dump-after prints the program and nothing else; leave out {}", name);
  }
}

}  // namespace

Examples examples_of(const Flags& flags) {
  if (!flags.model) {
    throw_user_error("'snug {0}' needs a model, as in 'snug {0} wrn-28-2 --batch 100' (see 'snug {0} --help')", flags.command);
  }
  if (!flags.batch) throw_user_error("'snug {0}' needs --batch, as in 'snug {0} {1} --batch 100'", flags.command, *flags.model);
  Examples examples{.batch = parse_count("--batch", *flags.batch, 1, kMostExamples), .microbatch = {}};
  if (flags.microbatch) {
    examples.microbatch = parse_count("--microbatch", *flags.microbatch, 1, kMostExamples);
    if (*examples.microbatch > examples.batch) {
      throw_user_error("--microbatch {} is more than --batch {}; use at most that", *examples.microbatch, examples.batch);
    }
  }
  return examples;
}

void run_plan(const Flags& flags) {
  if (flags.dump_after) refuse_beside_dump(flags);
  if (flags.timeline && !flags.json) throw UserError("--timeline goes with --json; --html FILE draws the same");
  PassOptions passes{.disabled = flags.disabled_passes, .enabled = flags.enabled_passes};
  std::string program_text;
  if (flags.dump_after) {
    passes.dump_after = *flags.dump_after;
    passes.dump = [&](std::string_view /*pass*/, const std::string& text) { program_text = text; };
  }
  const auto [request, found, backend, settings] = make_plan(flags, passes);
  const Plan& plan = found.plan;
  if (flags.save) train::write_plan_file(*flags.save, plan);
  if (flags.torch_snapshot) train::write_text_file(*flags.torch_snapshot, report::torch_snapshot(plan));
  if (flags.dump_after) return write_out(program_text);

  const bool explains = flags.explain || flags.timeline || flags.html;
  const Frontier frontier = explains ? find_frontier(request, backend) : Frontier();
  const std::vector<MethodStep> steps = explains ? explain(request, found.point, backend) : std::vector<MethodStep>();
  Backend limited = backend;  // as it was asked
  limited.workspace_limit = found.point.workspace_limit ? found.point.workspace_limit : request.options.workspace_limit;
  const std::vector<report::KernelUse> kernels =
      flags.kernels ? report::kernels_of(plan.program, limited) : std::vector<report::KernelUse>{};
  if (flags.json || flags.html) {
    nlohmann::ordered_json json = report::plan_json(plan, settings);
    if (explains) report::put_explanation(json, frontier, steps);
    if (flags.kernels) json["kernels"] = report::kernels_json(kernels);
    nlohmann::ordered_json drawn = json;
    if (flags.timeline || flags.html) drawn["timeline"] = report::timeline_json(plan);
    if (flags.html) train::write_text_file(*flags.html, report::page(drawn));
    if (flags.json) return write_json(flags.timeline ? drawn : json);
  }
  std::string text = report::plan_text(plan, settings);
  if (flags.explain) text += "\n" + report::explanation_text(frontier, found.point, steps);
  if (flags.kernels) text += "\n" + report::kernels_text(kernels);
  if (flags.html) text += fmt::format("\n{}: the memory report; open it in a browser\n", *flags.html);
  write_out(text);
}

void run_profile(const Flags& flags) {
  if (flags.accounting == "paper") return run_paper_profile(flags);
  if (flags.accounting != "real") throw_user_error("--accounting takes real or paper, not '{}'", flags.accounting);
  const auto [request, found, backend, settings] =
      make_plan(flags, {.disabled = flags.disabled_passes, .enabled = flags.enabled_passes});
  if (flags.json) return write_json(report::profile_json(found.plan, settings));
  write_out(report::profile_text(found.plan, settings));
}

}  // namespace snug::cli
