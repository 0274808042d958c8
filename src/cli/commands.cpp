#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/cpu.h"
#include "base/error.h"
#include "base/threads.h"
#include "cli/output.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/fit.h"
#include "plan/ladder.h"
#include "report/json.h"
#include "report/kernels.h"
#include "report/page.h"
#include "report/text.h"
#include "report/torch_snapshot.h"
#include "train/file_io.h"

namespace snug::cli {

namespace {

// What the flags ask for, planned.
struct Planned {
  Plan plan;
  Backend backend;
  report::Settings settings;
  std::vector<Rung> ladder;  // where the report is asked for
};

int asked_threads(const Flags& flags) {
  return flags.threads ? static_cast<int>(parse_count("--threads", *flags.threads, 1, 1024)) : 0;
}

Planned make_plan(const Flags& flags, const PassOptions& passes) {
  const auto [batch, microbatch] = examples_of(flags);
  const std::int64_t min_microbatch =
      flags.min_microbatch ? parse_count("--min-microbatch", *flags.min_microbatch, 1, kMostExamples) : 10;
  const std::optional<Bytes> budget = flags.budget ? std::optional(parse_size("--budget", *flags.budget)) : std::nullopt;
  const CheckpointStrategy checkpoint = parse_checkpoint_strategy(flags.checkpoint.value_or("none"));
  const std::string precision = flags.precision.value_or("fp32");
  require_value("--precision", precision, "fp32");
  const int threads = thread_count(asked_threads(flags));
  const frontend::ZooOptions options{
      .classes = flags.classes ? parse_count("--classes", *flags.classes, 2, 10'000'000) : 0,
      .image_size = flags.image_size ? parse_count("--image-size", *flags.image_size, 1, 65'536) : 0};

  Backend backend = backends::cpu_backend(threads);
  if (flags.workspace_limit) backend.workspace_limit = parse_size("--workspace-limit", *flags.workspace_limit);
  const auto model = [&](std::int64_t size) {
    frontend::ZooOptions sized = options;
    sized.batch = size;
    Graph graph = frontend::build_zoo_model(*flags.model, sized);
    frontend::freeze(graph, flags.frozen);
    return graph;
  };
  const CompileOptions compile_options{.batch = batch, .checkpoint = checkpoint, .passes = passes};
  Fit found = fit(
      {.model = model, .options = compile_options, .budget = budget, .microbatch = microbatch, .min_microbatch = min_microbatch},
      backend);
  report::Settings settings{.precision = precision,
                            .checkpoint = to_string(checkpoint),
                            .budget = budget,
                            .backend = std::string(backend.name),
                            .threads = threads};
  std::vector<Rung> ladder;
  if (flags.html || flags.timeline) ladder = find_ladder(model, compile_options, found.plan, backend);
  return {
      .plan = std::move(found.plan), .backend = std::move(backend), .settings = std::move(settings), .ladder = std::move(ladder)};
}

void write_json(const nlohmann::ordered_json& json) { write_out(json.dump() + "\n"); }

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
  if (flags.dump_after) {
    const std::array<std::pair<bool, std::string_view>, 4> others{{{flags.json, "--json"},
                                                                   {flags.kernels, "--kernels"},
                                                                   {flags.html.has_value(), "--html"},
                                                                   {flags.torch_snapshot.has_value(), "--torch-snapshot"}}};
    for (const auto& [given, name] : others) {
      if (given) throw_user_error("--dump-after prints the program and nothing else; leave out {}", name);
    }
  }
  if (flags.timeline && !flags.json) throw UserError("--timeline goes with --json; --html FILE draws the same");
  PassOptions passes{.disabled = flags.disabled_passes, .enabled = flags.enabled_passes};
  std::string program_text;
  if (flags.dump_after) {
    passes.dump_after = *flags.dump_after;
    passes.dump = [&](std::string_view /*pass*/, const std::string& text) { program_text = text; };
  }
  const auto [plan, backend, settings, ladder] = make_plan(flags, passes);
  if (flags.dump_after) return write_out(program_text);

  if (flags.torch_snapshot) train::write_text_file(*flags.torch_snapshot, report::torch_snapshot(plan));
  // The page is drawn from what --json --timeline prints.
  nlohmann::ordered_json json;
  if (flags.timeline || flags.html) {
    json = report::report_json(plan, settings);
    json["methods"] = report::methods_json(ladder);
    if (flags.html) train::write_text_file(*flags.html, report::page(json));
  }
  const std::vector<report::KernelUse> kernels =
      flags.kernels ? report::kernels_of(plan.program, backend) : std::vector<report::KernelUse>{};
  if (flags.json) {
    if (!flags.timeline) json = report::plan_json(plan, settings);
    if (flags.kernels) json["kernels"] = report::kernels_json(kernels);
    return write_json(json);
  }
  std::string text = report::plan_text(plan, settings);
  if (flags.kernels) text += "\n" + report::kernels_text(kernels);
  if (flags.html) text += fmt::format("\n{}: the memory report; open it in a browser\n", *flags.html);
  write_out(text);
}

void run_profile(const Flags& flags) {
  if (flags.accounting == "paper") return run_paper_profile(flags);
  if (flags.accounting != "real") throw_user_error("--accounting takes real or paper, not '{}'", flags.accounting);
  if (flags.nonzero) throw_user_error("--nonzero goes with --accounting paper; weights are trained dense so far");
  const auto [plan, backend, settings, ladder] =
      make_plan(flags, {.disabled = flags.disabled_passes, .enabled = flags.enabled_passes});
  if (flags.json) return write_json(report::profile_json(plan, settings));
  write_out(report::profile_text(plan, settings));
}

}  // namespace snug::cli
