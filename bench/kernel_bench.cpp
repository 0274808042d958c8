// What takes a training step's time: times every distinct kernel of a model's step, as its plan chose and placed them, against
// what the machine could do at best.
//
//   kernel_bench                                   WRN-28-2, batch 100
//   kernel_bench wrn-28-2 --batch 100 --microbatch 10 --threads 2
//   kernel_bench --microbatch 10 --workspace-limit 200KB --steps-only     the whole step alone, as planned with other kernels
//   kernel_bench --plan FILE                       a plan that `snug plan --save FILE` has made, for whatever budget
//   kernel_bench --precision bf16 --without pairs_conv2d_grad_weight      the next choice in a kernel's place
//
// Google Benchmark runs the kernels, so its flags work too: --benchmark_filter=conv, --benchmark_min_time=1,
// --benchmark_out=kernels.json. A kernel's time is the median of its runs (--least: the least).
#include <algorithm>
#include <map>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "backends/cpu/cpu.h"
#include "base/error.h"
#include "base/median.h"
#include "base/threads.h"
#include "frontend/zoo.h"
#include "io/plan_file.h"
#include "kernel_bench/machine.h"
#include "kernel_bench/step_walker.h"
#include "plan/compile.h"
#include "train/random_batches.h"
#include "train/session.h"

namespace snug::bench {

namespace {

struct Options {
  std::string model = "wrn-28-2";
  std::int64_t batch = 100;
  std::int64_t microbatch = 0;  // 0: the whole batch
  std::int64_t image_size = 0;  // 0: the model's own
  int threads = 0;              // 0: all cores
  int steps = 7;                // whole steps to time
  bool steps_only = false;      // not the kernels
  bool least = false;           // a kernel's time is its least
  std::string plan;             // a file; empty: made here
  std::string precision = "fp32";
  std::string workspace_limit;       // of a kernel; empty: none
  bool prepacks = false;             // weights that kernels want in another layout
  std::vector<std::string> without;  // kernels to leave out
};

// Says nothing while benchmarks run: the table comes at the end.
class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& /*report*/) override {}
};

struct Row {
  const DistinctKernel* kernel;
  double seconds;  // of one run
  int runs;        // in a step
  double total() const { return seconds * runs; }
};

double multiplying_seconds(const DistinctKernel& kernel, const MachineBound& machine) {
  return kernel.gigaflop / (kernel.in_bf16 && machine.bf16_gflops > 0 ? machine.bf16_gflops : machine.gflops);
}

// The least time that the machine's bounds allow.
double bound_seconds(const DistinctKernel& kernel, const MachineBound& machine) {
  return std::max(multiplying_seconds(kernel, machine), kernel.gigabytes / machine.gigabytes_a_second);
}

void print_rows(const std::vector<Row>& rows, const MachineBound& machine, double step_seconds) {
  fmt::print("{:>5} {:>9} {:>8} {:>6}  {:>9} {:>7} {:>8}  {:28} {}\n", "runs", "ms each", "ms all", "share", "GFLOP/s", "GB/s",
             "of bound", "kernel", "operands");
  constexpr double kWorthALine = 0.0005;  // of the step
  double small = 0;
  int small_runs = 0;
  for (const Row& row : rows) {
    const DistinctKernel& k = *row.kernel;
    if (row.total() < kWorthALine * step_seconds) {
      small += row.total();
      small_runs += row.runs;
      continue;
    }
    const bool computes = multiplying_seconds(k, machine) > k.gigabytes / machine.gigabytes_a_second;
    fmt::print("{:5} {:9.3f} {:8.2f} {:5.1f}%  {:>9} {:7.1f} {:7.0f}%  {:28} {}\n", row.runs, 1e3 * row.seconds,
               1e3 * row.total(), 100 * row.total() / step_seconds,
               computes ? fmt::format("{:.1f}", k.gigaflop / row.seconds) : "", k.gigabytes / row.seconds,
               100 * bound_seconds(k, machine) / row.seconds, k.kernel, k.shape);
  }
  fmt::print("{:5} {:9} {:8.2f} {:5.1f}%  {:27} smaller ones\n", small_runs, "", 1e3 * small, 100 * small / step_seconds, "");
}

void print_kinds(const std::vector<Row>& rows, const MachineBound& machine, double step_seconds) {
  struct Kind {
    int runs = 0;
    double seconds = 0, bound = 0, gigaflop = 0, gigabytes = 0;
  };
  std::map<std::string, Kind> kinds;
  Kind sum;
  for (const Row& row : rows) {
    for (Kind* kind : {&kinds[row.kernel->kernel], &sum}) {
      kind->runs += row.runs;
      kind->seconds += row.total();
      kind->bound += row.runs * bound_seconds(*row.kernel, machine);
      kind->gigaflop += row.runs * row.kernel->gigaflop;
      kind->gigabytes += row.runs * row.kernel->gigabytes;
    }
  }
  std::vector<std::pair<std::string, Kind>> sorted(kinds.begin(), kinds.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  sorted.emplace_back("all kernels", sum);
  fmt::print("\nWhat takes the step's time\n{:>5} {:>8} {:>6}  {:>9} {:>7} {:>8}  {}\n", "runs", "ms all", "share", "GFLOP/s",
             "GB/s", "of bound", "kernel");
  for (const auto& [name, kind] : sorted) {
    fmt::print("{:5} {:8.2f} {:5.1f}%  {:9.1f} {:7.1f} {:7.0f}%  {}\n", kind.runs, 1e3 * kind.seconds,
               100 * kind.seconds / step_seconds, kind.gigaflop / kind.seconds, kind.gigabytes / kind.seconds,
               100 * kind.bound / kind.seconds, name);
  }
  fmt::print("{:5} {:8.2f} {:5.1f}%  {:28}{}\n", "", 1e3 * (step_seconds - sum.seconds),
             100 * (step_seconds - sum.seconds) / step_seconds, "", "the step as a whole, less the kernels timed alone");
}

Plan plan_of(const Options& options, const Backend& backend) {
  if (!options.plan.empty()) {
    Plan plan = io::read_plan_file(options.plan);
    io::check_kernels(plan, backend);
    return plan;
  }
  const DType dtype = options.precision == "bf16" ? DType::bf16 : options.precision == "fp16" ? DType::f16 : DType::f32;
  return compile(
      frontend::build_zoo_model(options.model, {.batch = options.microbatch == 0 ? options.batch : options.microbatch,
                                                .image_size = options.image_size,
                                                .augment = true}),
      backend,
      {.batch = options.batch,
       .methods = {.precision = dtype,
                   .prepack_weights = options.prepacks,
                   .workspace_limit =
                       options.workspace_limit.empty() ? std::nullopt : std::optional(parse_bytes(options.workspace_limit))}});
}

void run(const Options& options) {
  const int threads = thread_count(options.threads);
  Backend backend = backends::cpu_backend(threads);
  for (const std::string& kernel : options.without) {
    if (std::erase_if(backend.kernels, [&](const KernelDef* known) { return known->name == kernel; }) == 0)
      throw_user_error("there is no kernel '{}' to leave out", kernel);
  }
  omp_set_num_threads(threads);  // for libraries' loops, as the runtime does
  Plan plan = plan_of(options, backend);
  const MachineBound machine = options.steps_only ? MachineBound{} : measure_machine(threads);
  if (!options.steps_only)
    fmt::print("{} threads: {:.0f} GFLOP/s of multiply-adds in registers, {:.0f} of pairs of bf16, {:.1f} GB/s of a triad\n",
               threads, machine.gflops, machine.bf16_gflops, machine.gigabytes_a_second);
  train::Session session(std::move(plan), backend, 1);
  const std::int64_t batch = session.plan().program.batch;
  const std::int64_t microbatch = session.plan().program.microbatch;
  const std::int64_t microbatches = (batch + microbatch - 1) / microbatch;
  session.set_learning_rate(1e-3);
  const train::RandomBatches batches(session.plan().program, batch, 1, 1);
  std::vector<double> steps;
  for (int i = 0; i <= options.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    session.train_step(batches[0]);
    steps.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  steps.erase(steps.begin());  // the first one warms up
  const double step_seconds = median(steps);
  fmt::print("{}, batch {} in microbatches of {}: {:.1f} ms a step, {:.1f} images/s, {} bytes\n\n", session.plan().program.name,
             batch, microbatch, 1e3 * step_seconds, static_cast<double>(batch) / step_seconds,
             session.plan().planned_peak_bytes.count());
  if (options.steps_only) return;

  StepWalker walker(session);
  std::vector<std::vector<double>> times(walker.distinct().size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const DistinctKernel& kernel = walker.distinct()[i];
    benchmark::RegisterBenchmark(fmt::format("{}/{}", kernel.kernel, kernel.shape).c_str(),
                                 [&, i](benchmark::State& state) {
                                   walker.go_to(walker.distinct()[i].first);
                                   for (auto _ : state) {
                                     times[i].push_back(walker.run_seconds());
                                     state.SetIterationTime(times[i].back());
                                   }
                                   state.counters["GFLOP/s"] = benchmark::Counter(walker.distinct()[i].gigaflop,
                                                                                  benchmark::Counter::kIsIterationInvariantRate);
                                   state.counters["GB/s"] = benchmark::Counter(walker.distinct()[i].gigabytes,
                                                                               benchmark::Counter::kIsIterationInvariantRate);
                                 })
        ->UseManualTime()
        ->MinTime(0.2);
  }
  Silent reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);

  std::vector<Row> rows;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].empty()) continue;  // filtered out
    const DistinctKernel& kernel = walker.distinct()[i];
    const double seconds = options.least ? *std::min_element(times[i].begin(), times[i].end()) : median(times[i]);
    const int runs = kernel.count * static_cast<int>(kernel.in_micro ? microbatches : 1);
    rows.push_back({&kernel, seconds, runs});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.total() > b.total(); });
  print_rows(rows, machine, step_seconds);
  print_kinds(rows, machine, step_seconds);
}

}  // namespace

}  // namespace snug::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);  // takes its own flags out
  snug::bench::Options options;
  CLI::App app("Times every kernel of a training step against the machine's bounds");
  app.add_option("model", options.model, "a model of the zoo");
  app.add_option("--batch", options.batch);
  app.add_option("--microbatch", options.microbatch, "0: the whole batch");
  app.add_option("--image-size", options.image_size, "0: the model's own");
  app.add_option("--threads", options.threads, "0: all cores");
  app.add_option("--steps", options.steps, "whole steps to time")->check(CLI::Range(1, 1000));
  app.add_flag("--steps-only", options.steps_only, "time whole steps and no kernels");
  app.add_flag("--least", options.least, "of each kernel's runs the fastest, for a machine that is not quiet");
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--workspace-limit", options.workspace_limit, "most scratch of one kernel, such as 256KB");
  app.add_flag("--prepack-weights", options.prepacks, "keep the copies of weights that kernels otherwise make at every run");
  app.add_option("--without", options.without, "a kernel to leave out, for the next choice in its place");
  app.add_option("--plan", options.plan, "a file of 'snug plan --save', instead of a model")
      ->excludes("model")
      ->excludes("--batch")
      ->excludes("--microbatch")
      ->excludes("--image-size")
      ->excludes("--workspace-limit")
      ->excludes("--prepack-weights")
      ->excludes("--precision")
      ->excludes("--without");
  CLI11_PARSE(app, argc, argv);
  try {
    snug::bench::run(options);
    return 0;
  } catch (const snug::UserError& error) {
    fmt::print(stderr, "kernel_bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernel_bench: {}\n", error.what());
    return 1;
  }
}
