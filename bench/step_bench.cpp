// Trains a model of the zoo on random images or tokens and says how fast a step is, how many bytes it took, and what the losses
// were:
//
//   step_bench wrn-28-2 --batch 100 --device cuda --precision fp16 --steps 200 --json
//   step_bench gpt2 --batch 16 --device cuda --precision bf16 --budget 4.3GB --json
//
// Images are trained by SGD, tokens by AdamW. The same seed gives the same images, labels and initial weights on every device, so
// that losses can be compared; on one device the bits of losses and weights can, which exactness.py does.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/costs.h"
#include "backends/cpu/cpu.h"
#include "backends/cuda_plugin.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/median.h"
#include "base/threads.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "plan/fit.h"
#include "train/random_batches.h"
#include "train/session.h"

namespace snug {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
  std::string model = "wrn-28-2";
  std::int64_t batch = 100;
  std::int64_t microbatch = 0;  // 0: the whole batch
  std::int64_t image_size = 0;  // 0: the model's own
  std::int64_t length = 0;      // of language models: tokens of an example; 0: the model's context
  std::int64_t vocabulary = 0;  // 0: the model's own
  std::string budget = {};      // empty: what the other options say, whatever it takes
  std::string device = "cpu";
  std::string precision = "fp32";
  int steps = 100;
  int threads = 0;
  double learning_rate = 0.1;
  double loss_scale = 0;  // 0: 1024 in fp16, else 1
  std::uint64_t seed = 1;
  std::string workspace_limit = "16MiB";
  std::string checkpoint = "none";
  std::vector<std::string> disabled_passes = {};
  bool tf32 = false;
  bool graphs = true;
  bool json = false;
  bool kernels = false;
};

Backend open_backend(const Options& options) {
  if (options.device == "cuda") {
    return backends::load_cuda_backend(
        {.allow_tf32 = options.tf32, .use_graphs = options.graphs, .workspace_limit = parse_bytes(options.workspace_limit)});
  }
  return backends::cpu_backend(thread_count(options.threads));
}

// Of what training leaves: parameters, momenta, running statistics, in logical order.
std::string weights_checksum(const train::Session& session) {
  Crc64 checksum;
  const Program& program = session.plan().program;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const Role role = program.states[i].role;
    if (role != Role::parameter && role != Role::optimizer && role != Role::statistic) continue;
    std::vector<std::byte> bytes(session.logical_bytes(StateId(i)));
    session.read_logical(StateId(i), bytes);
    checksum.update(bytes);
  }
  return fmt::format("{:016x}", checksum.value());
}

Json kernel_counts(const Plan& plan) {
  std::map<std::string, int> counts;
  for (const Section& section : plan.program.sections) {
    if (section.kind != SectionKind::micro && section.kind != SectionKind::update) continue;
    for (const Node& node : section.nodes) ++counts[node.kernel];
  }
  return counts;
}

Bytes largest_workspace(const Plan& plan) {
  Bytes largest;
  for (const Section& section : plan.program.sections) {
    for (const Value& value : section.values) {
      if (value.role == Role::workspace) largest = std::max(largest, value.type.bytes());
    }
  }
  return largest;
}

void print_kernels(const Plan& plan) {
  const Section& micro = *plan.program.find_section(SectionKind::micro);
  for (const Node& node : micro.nodes) {
    const Bytes workspace = node.workspace.valid() ? micro.value(node.workspace).type.bytes() : Bytes(0);
    fmt::print(stderr, "{:36} {:28} {} workspace {}\n", node.kernel, node.layer,
               to_string(micro.value(node.outputs.front()).type), workspace.count());
  }
}

Plan make_plan(const Options& options, const Backend& backend, std::int64_t microbatch, DType dtype) {
  const auto model = [&options](std::int64_t examples) {
    return frontend::build_zoo_model(options.model, {.batch = examples,
                                                     .image_size = options.image_size,
                                                     .vocabulary = options.vocabulary,
                                                     .length = options.length,
                                                     .augment = true});
  };
  ops::UpdateOptions update;
  if (frontend::language_model_size(options.model)) {
    update.rule = "adamw";
    update.stochastic_rounding = dtype == DType::bf16;
  }
  const PassOptions passes{.disabled = options.disabled_passes};
  Methods methods{.precision = dtype};
  if (options.budget.empty()) {
    methods.checkpoint = parse_checkpoint_strategy(options.checkpoint);
    return compile(model(microbatch), backend, {.batch = options.batch, .methods = methods, .update = update, .passes = passes});
  }
  if (options.microbatch != 0) methods.microbatch = options.microbatch;
  if (options.checkpoint != "none") methods.checkpoint = parse_checkpoint_strategy(options.checkpoint);
  return fit({.model = model,
              .options = {.batch = options.batch,
                          .update = update,
                          .costs = find_costs(std::nullopt, backend).table(),
                          .passes = passes},
              .given = methods,
              .budget = parse_bytes(options.budget),
              .stochastic_rounding = update.stochastic_rounding},
             backend)
      .plan;
}

Json run(const Options& options) {
  const std::int64_t microbatch = options.microbatch == 0 ? options.batch : options.microbatch;
  const DType dtype = options.precision == "fp16" ? DType::f16 : options.precision == "bf16" ? DType::bf16 : DType::f32;
  const Backend backend = open_backend(options);
  const auto start = Clock::now();
  Plan made = make_plan(options, backend, microbatch, dtype);
  const double plan_seconds = seconds_since(start);
  if (options.kernels) print_kernels(made);

  train::Session session(std::move(made), backend, options.seed);
  session.set_learning_rate(options.learning_rate);
  session.set_loss_scale(options.loss_scale > 0 ? options.loss_scale : dtype == DType::f16 ? 1024 : 1);
  const Plan& plan = session.plan();
  const train::RandomBatches batches(plan.program, options.batch, options.seed);

  std::vector<double> losses;
  std::vector<double> times;
  for (int step = 0; step < options.steps; ++step) {
    const auto begin = Clock::now();
    const double loss = session.train_step(batches[static_cast<std::size_t>(step)]).loss;
    times.push_back(seconds_since(begin));
    if (losses.size() < 20) losses.push_back(loss);
  }
  std::vector<std::string> loss_bits;
  loss_bits.reserve(losses.size());
  for (const double loss : losses) loss_bits.push_back(fmt::format("{:016x}", std::bit_cast<std::uint64_t>(loss)));
  const std::string checksum = weights_checksum(session);
  // The first steps load libraries and record graphs.
  const double first_step_seconds = times.front();
  if (times.size() > 10) times.erase(times.begin(), times.begin() + 5);
  const double step_seconds = median(times);

  session.executor().start_measuring();
  for (std::size_t i = 0; i < 2; ++i) {
    session.train_step(batches[i]);
    session.evaluate(batches[i]);
  }
  return {
      {"model", options.model},
      {"device", options.device},
      {"precision", options.precision},
      {"batch", options.batch},
      {"microbatch", plan.program.microbatch},
      {"checkpoint", plan.methods.checkpoint ? to_string(*plan.methods.checkpoint) : options.checkpoint},
      {"steps", options.steps},
      {throughput_of(plan.program).field(), throughput_of(plan.program).rate(static_cast<double>(options.batch) / step_seconds)},
      {"step_seconds", step_seconds},
      {"first_step_seconds", first_step_seconds},
      {"plan_seconds", plan_seconds},
      {"planned_peak_bytes", plan.planned_peak_bytes.count()},
      {"persistent_bytes", plan.persistent_bytes.count()},
      {"measured_peak_bytes", session.executor().measured_peak_bytes().count()},
      {"largest_workspace_bytes", largest_workspace(plan).count()},
      {"margins_untouched", session.executor().arena().margins_untouched()},
      {"kernels", kernel_counts(plan)},
      {"losses", losses},
      {"loss_bits", loss_bits},
      {"weights_checksum", checksum}};
}

void print(const Json& result) {
  fmt::print("{} {} {}: batch {} in microbatches of {}\n", result["model"].get<std::string>(),
             result["device"].get<std::string>(), result["precision"].get<std::string>(), result["batch"].get<std::int64_t>(),
             result["microbatch"].get<std::int64_t>());
  const bool of_tokens = result.contains("tokens_per_second");
  fmt::print("  {:.0f} {}/s, {:.3f} ms a step; planned {} bytes, measured {}\n",
             result[of_tokens ? "tokens_per_second" : "images_per_second"].get<double>(), of_tokens ? "tokens" : "images",
             1e3 * result["step_seconds"].get<double>(), result["planned_peak_bytes"].get<std::int64_t>(),
             result["measured_peak_bytes"].get<std::int64_t>());
  fmt::print("  losses");
  for (const double loss : result["losses"]) fmt::print(" {:.5f}", loss);
  fmt::print("\n");
}

}  // namespace

}  // namespace snug

int main(int argc, char** argv) {
  snug::Options options;
  CLI::App app("Times training steps on random images or tokens");
  app.add_option("model", options.model, "a model of the zoo");
  app.add_option("--batch", options.batch);
  app.add_option("--microbatch", options.microbatch, "0: the whole batch");
  app.add_option("--image-size", options.image_size, "0: the model's own");
  app.add_option("--length", options.length, "tokens of an example; 0: the model's context");
  app.add_option("--vocabulary", options.vocabulary, "0: the model's own");
  app.add_option(
      "--budget", options.budget,
      "the plan that snug train would choose for so many bytes, by this machine's measured costs where there are some");
  app.add_option("--device", options.device)->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--steps", options.steps)->check(CLI::Range(1, 1'000'000));
  app.add_option("--threads", options.threads, "of the CPU; 0: all cores");
  app.add_option("--lr", options.learning_rate);
  app.add_option("--loss-scale", options.loss_scale, "0: 1024 in fp16, else 1");
  app.add_option("--seed", options.seed);
  app.add_option("--workspace-limit", options.workspace_limit, "of a library's kernel on the GPU, where it has a choice");
  app.add_option("--checkpoint", options.checkpoint, "what stays for backward, as for snug plan");
  app.add_option("--disable-pass", options.disabled_passes, "a pass to leave out; may be given several times");
  app.add_flag("--tf32", options.tf32, "allow TF32 in fp32 products");
  app.add_flag("!--no-graphs", options.graphs, "launch every kernel by itself");
  app.add_flag("--kernels", options.kernels, "list the chosen kernels on standard error");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  try {
    const snug::Json result = snug::run(options);
    if (options.json) {
      std::puts(result.dump().c_str());
    } else {
      snug::print(result);
    }
    return 0;
  } catch (const snug::UserError& error) {
    fmt::print(stderr, "step_bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "step_bench: {}\n", error.what());
    return 1;
  }
}
