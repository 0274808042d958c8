#include "cli/commands.h"

#include <algorithm>
#include <thread>

#include "backends/cpu/cpu.h"
#include "base/error.h"
#include "cli/output.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "report/json.h"
#include "report/kernels.h"
#include "report/text.h"

namespace snug::cli {

namespace {

// What the flags ask for, ready to compile.
struct Request {
  Graph graph;
  Backend backend;
  CompileOptions options;
  report::Settings settings;
};

int thread_count(const Flags& flags) {
  if (flags.threads) return static_cast<int>(parse_count("--threads", *flags.threads, 1, 1024));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

Request make_request(const Flags& flags) {
  if (!flags.model) {
    throw_user_error("'snug {0}' needs a model, as in 'snug {0} wrn-28-2 --batch 100' (see 'snug {0} --help')", flags.command);
  }
  if (!flags.batch) throw_user_error("'snug {0}' needs --batch, as in 'snug {0} {1} --batch 100'", flags.command, *flags.model);
  constexpr std::int64_t kMostExamples = 1'000'000'000;
  const std::int64_t batch = parse_count("--batch", *flags.batch, 1, kMostExamples);
  const std::int64_t microbatch = flags.microbatch ? parse_count("--microbatch", *flags.microbatch, 1, kMostExamples) : batch;
  if (microbatch > batch) throw_user_error("--microbatch {} is more than --batch {}; use at most that", microbatch, batch);
  require_value("--checkpoint", flags.checkpoint, "none");
  require_value("--precision", flags.precision, "fp32");
  require_value("--accounting", flags.accounting, "real");
  const int threads = thread_count(flags);

  Graph graph = frontend::build_zoo_model(
      *flags.model, {.batch = microbatch,
                     .classes = flags.classes ? parse_count("--classes", *flags.classes, 2, 10'000'000) : 0,
                     .image_size = flags.image_size ? parse_count("--image-size", *flags.image_size, 1, 65'536) : 0});
  frontend::freeze(graph, flags.frozen);
  Backend backend = backends::cpu_backend(threads);
  if (flags.workspace_limit) backend.workspace_limit = parse_bytes(*flags.workspace_limit);
  report::Settings settings{
      .precision = flags.precision, .checkpoint = flags.checkpoint, .backend = std::string(backend.name), .threads = threads};
  return {.graph = std::move(graph),
          .backend = std::move(backend),
          .options = {.batch = batch, .passes = {.disabled = flags.disabled_passes, .enabled = flags.enabled_passes}},
          .settings = std::move(settings)};
}

void write_json(const nlohmann::ordered_json& json) { write_out(json.dump() + "\n"); }

}  // namespace

void run_plan(const Flags& flags) {
  if (flags.dump_after && (flags.json || flags.kernels)) {
    throw_user_error("--dump-after prints the program and nothing else; leave out {}", flags.json ? "--json" : "--kernels");
  }
  Request request = make_request(flags);
  std::string program_text;
  if (flags.dump_after) {
    request.options.passes.dump_after = *flags.dump_after;
    request.options.passes.dump = [&](std::string_view /*pass*/, const std::string& text) { program_text = text; };
  }
  const Plan plan = compile(request.graph, request.backend, request.options);
  if (flags.dump_after) return write_out(program_text);

  const std::vector<report::KernelUse> kernels =
      flags.kernels ? report::kernels_of(plan.program, request.backend) : std::vector<report::KernelUse>{};
  if (flags.json) {
    nlohmann::ordered_json json = report::plan_json(plan, request.settings);
    if (flags.kernels) json["kernels"] = report::kernels_json(kernels);
    return write_json(json);
  }
  std::string text = report::plan_text(plan, request.settings);
  if (flags.kernels) text += "\n" + report::kernels_text(kernels);
  write_out(text);
}

void run_profile(const Flags& flags) {
  const Request request = make_request(flags);
  const Plan plan = compile(request.graph, request.backend, request.options);
  if (flags.json) return write_json(report::profile_json(plan, request.settings));
  write_out(report::profile_text(plan, request.settings));
}

}  // namespace snug::cli
