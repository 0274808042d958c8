// What NVIDIA's driver takes on the GPU for a process, step by step: the bare context under several settings, each library, a
// CUDA graph, and training with Snug's plugin. Every sequence is a process of its own.
//
//   driver_bytes                       all of them, as a table
//   driver_bytes --only training       those whose name begins so
//   driver_bytes --json --smi          as JSON, and what nvidia-smi says at the end of each
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/prepare.h"
#include "backends/driver_account.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "driver_bytes/calls.h"
#include "train/random_batches.h"
#include "train/session.h"

namespace snug::driver_bytes {

namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<Bytes>& bytes) { return bytes ? Json(bytes->count()) : Json(nullptr); }

// Asks the driver after every step of a sequence.
class Steps {
 public:
  Steps() : account_(backends::load_nvml(), bus_id(), static_cast<std::uint32_t>(getpid())) {}

  void after(const std::string& what) {
    steps_.push_back({{"after", what},
                      {"process_bytes", or_null(account_.of_process())},
                      {"device_growth_bytes", or_null(account_.device_growth())},
                      {"resident_bytes", process_memory().resident.count()}});
  }
  // Once the device has done what it was told.
  void after_waiting(const std::string& what) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    after(what);
  }
  Listener listener() {
    return {[](void* self, const char* what) { static_cast<Steps*>(self)->after_waiting(what); }, this};
  }
  const Json& json() const { return steps_; }

 private:
  static std::string bus_id() {
    std::array<char, 32> id{};
    check(cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), 0), "cudaDeviceGetPCIBusId");
    return id.data();
  }

  backends::DriverAccount account_;
  Json steps_ = Json::array();
};

void make_context(Steps& steps) {
  check(cudaSetDevice(0), "cudaSetDevice");
  check(cudaFree(nullptr), "cudaFree");
  steps.after_waiting("context");
}

void set_limit(Steps& steps, cudaLimit limit, std::size_t bytes, const char* name) {
  if (cudaDeviceSetLimit(limit, bytes) != cudaSuccess) {
    cudaGetLastError();
    return steps.after(fmt::format("{} of {}: refused", name, bytes));
  }
  std::size_t now = 0;
  check(cudaDeviceGetLimit(&now, limit), "cudaDeviceGetLimit");
  steps.after_waiting(fmt::format("{} of {}, now {}", name, bytes, now));
}

void run_kernel(Steps& steps) {
  launch_empty(nullptr);
  steps.after_waiting("empty kernel");
}

void run_kernel_with_stack(Steps& steps) {
  launch_with_stack(nullptr);
  steps.after_waiting("kernel with a stack of 4 KiB");
  std::size_t now = 0;
  check(cudaDeviceGetLimit(&now, cudaLimitStackSize), "cudaDeviceGetLimit");
  launch_empty(nullptr);
  steps.after_waiting(fmt::format("empty kernel again, stack limit now {}", now));
}

void use_graph(Steps& steps, int nodes) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < nodes; ++i) launch_empty(stream);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  steps.after_waiting(fmt::format("graph of {} kernels", nodes));
  // Neither is given back: the next graph must not get its memory.
}

void take_memory(Steps& steps, std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  steps.after_waiting(fmt::format("cudaMalloc of {} bytes", bytes));
}

void everything_bare(Steps& steps) {
  make_context(steps);
  run_kernel(steps);
  take_memory(steps, 6'594'112);
  void* pinned = nullptr;
  check(cudaMallocHost(&pinned, std::size_t{4} << 20U), "cudaMallocHost");
  steps.after_waiting("4 MiB pinned on the host");
  use_graph(steps, 100);
  use_graph(steps, 1000);
  use_graph(steps, 1000);
  run_kernel_with_stack(steps);
}

void stack_limits(Steps& steps) {
  make_context(steps);
  for (const std::size_t bytes : {512, 256, 128, 16, 0}) set_limit(steps, cudaLimitStackSize, bytes, "stack");
  run_kernel(steps);
  run_kernel_with_stack(steps);
  set_limit(steps, cudaLimitStackSize, 256, "stack");
}

void other_limits(Steps& steps) {
  make_context(steps);
  set_limit(steps, cudaLimitMallocHeapSize, 64 << 10, "heap for malloc");
  set_limit(steps, cudaLimitPrintfFifoSize, 64 << 10, "buffer of printf");
  set_limit(steps, cudaLimitDevRuntimePendingLaunchCount, 1, "pending launches");
  run_kernel(steps);
}

void all_limits(Steps& steps) {
  check(cudaDeviceSetLimit(cudaLimitStackSize, 256), "cudaDeviceSetLimit");
  steps.after("stack limit of 256 before anything else");
  other_limits(steps);
}

std::function<void(Steps&)> with_flags(unsigned int flags) {
  return [flags](Steps& steps) {
    check(cudaSetDeviceFlags(flags), "cudaSetDeviceFlags");
    make_context(steps);
    run_kernel(steps);
    run_kernel_with_stack(steps);
  };
}

void bare(Steps& steps) {
  make_context(steps);
  run_kernel(steps);
}

std::function<void(Steps&)> with_library(void (*use)(Listener)) {
  return [use](Steps& steps) {
    bare(steps);
    use(steps.listener());
  };
}

// As `snug train` does it: the search, the arena, a step kernel by kernel, a step that records graphs, further steps.
std::function<void(Steps&)> with_training(settings::Recipe recipe) {
  recipe.device = "cuda";
  recipe.model = "wrn-28-2";
  recipe.data = "random";
  return [recipe](Steps& steps) {
    const Backend backend = open_backend(recipe);
    steps.after_waiting("plugin opened");
    Plan plan = fit_recipe(recipe, random_description(recipe), backend).plan;
    steps.after_waiting("planned");
    std::string libraries;
    for (const char* library : {"cudnn_", "cublaslt_"}) {
      for (const Section& section : plan.program.sections) {
        if (std::ranges::any_of(section.nodes, [&](const Node& node) { return node.kernel.starts_with(library); })) {
          libraries += fmt::format(", with {}", library);
          break;
        }
      }
    }
    train::Session session(std::move(plan), backend, 1);
    configure(session, recipe);
    steps.after_waiting(fmt::format("arena of {} bytes, kernels bound{}", session.plan().planned_peak_bytes.count(), libraries));
    const train::RandomBatches batches(session.plan().program, recipe.batch, 1);
    for (std::size_t i = 0; i < 4; ++i) {
      session.train_step(batches[i]);
      steps.after_waiting(fmt::format("training step {}", i + 1));
    }
    for (int i = 0; i < 2; ++i) session.evaluate(batches[0]);
    steps.after_waiting("evaluation");
  };
}

struct Sequence {
  std::string name;
  std::string environment;  // "NAME=value ..." for the process
  std::function<void(Steps&)> run;
};

std::vector<Sequence> sequences() {
  std::vector<Sequence> all{
      {"context, then everything bare", "", everything_bare},
      {"context, stack limits", "", stack_limits},
      {"context, other limits", "", other_limits},
      {"context, limits before it", "", all_limits},
      {"context, one connection", "CUDA_DEVICE_MAX_CONNECTIONS=1", bare},
      {"context, one copy connection", "CUDA_DEVICE_MAX_CONNECTIONS=1 CUDA_DEVICE_MAX_COPY_CONNECTIONS=1", bare},
      {"context, small launch queues", "CUDA_SCALE_LAUNCH_QUEUES=0.25x", bare},
      {"context, modules loaded eagerly, those of cuBLASLt too", "CUDA_MODULE_LOADING=EAGER", bare},
      {"context, all small", "CUDA_DEVICE_MAX_CONNECTIONS=1 CUDA_DEVICE_MAX_COPY_CONNECTIONS=1 CUDA_SCALE_LAUNCH_QUEUES=0.25x",
       all_limits},
      {"context, flag LmemResizeToMax", "", with_flags(cudaDeviceLmemResizeToMax)},
      {"context, flag ScheduleBlockingSync", "", with_flags(cudaDeviceScheduleBlockingSync)},
      {"library cuBLASLt", "", with_library(use_cublaslt)},
      {"library cuBLAS", "", with_library(use_cublas)},
      {"library cuDNN", "", with_library(use_cudnn)},
  };
  struct Training {
    const char* name;
    const char* precision;
    std::optional<double> nonzero;
    std::optional<Bytes> budget;
  };
  for (const Training& training : {Training{"fp32", "fp32", {}, {}}, Training{"fp16", "fp16", {}, {}},
                                   Training{"fp16, 30% of the weights, 6.7 MB", "fp16", 0.3, Bytes(6'700'000)}}) {
    settings::Recipe recipe;
    recipe.methods.precision = parse_precision(training.precision);
    recipe.methods.nonzero = training.nonzero;
    recipe.budget_bytes = training.budget;
    for (const char* environment : {"", "CUDA_MODULE_LOADING=EAGER", "CUDA_DEVICE_MAX_CONNECTIONS=1"}) {
      all.push_back({fmt::format("training {}{}{}", training.name, *environment == '\0' ? "" : ", ", environment), environment,
                     with_training(recipe)});
    }
  }
  return all;
}

// "used_memory" of this process in MiB, in nvidia-smi's own words.
std::string ask_nvidia_smi() {
  const std::string command = fmt::format(
      "nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader 2>&1 | grep -w '^{}' || echo not listed", getpid());
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 256> line{};
  std::string said;
  while (pipe != nullptr && std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) said += line.data();
  if (pipe != nullptr) pclose(pipe);
  return said.substr(0, said.find('\n'));
}

// In the process of the one sequence.
void run_one(const Sequence& sequence, bool smi) {
  Json result{{"sequence", sequence.name}, {"environment", sequence.environment}};
  Steps steps;
  steps.after("nothing");
  try {
    sequence.run(steps);
  } catch (const std::exception& error) {
    result["failed"] = error.what();
  }
  result["steps"] = steps.json();
  if (smi) result["nvidia_smi"] = ask_nvidia_smi();
  std::puts(result.dump().c_str());
}

// This program again, in a process that runs only this.
Json run_in_process(std::size_t index, const Sequence& sequence, bool smi) {
  const std::string command = fmt::format("env {} '{}' --sequence {}{}", sequence.environment,
                                          std::filesystem::read_symlink("/proc/self/exe").string(), index, smi ? " --smi" : "");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("no process could be started");
  std::string said;
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), static_cast<int>(part.size()), pipe) != nullptr) said += part.data();
  pclose(pipe);
  Json json = Json::parse(said, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return {{"sequence", sequence.name}, {"environment", sequence.environment}, {"failed", "the process ended without a result"}};
}

std::string mebibytes(const Json& bytes) {
  return bytes.is_null() ? "-" : fmt::format("{:.2f}", bytes.get<double>() / (1 << 20));
}

void print(const Json& result) {
  fmt::print("{}\n", result["sequence"].get<std::string>());
  if (result.contains("steps")) {
    fmt::print("{:>12} {:>10} {:>12} {:>10}  MiB, after\n", "process", "more", "device grew", "resident");
    std::optional<double> before;
    for (const Json& step : result["steps"]) {
      const Json& counted = step["process_bytes"].is_null() ? step["device_growth_bytes"] : step["process_bytes"];
      const double now = counted.is_null() ? 0 : counted.get<double>();
      fmt::print("{:>12} {:>+10.2f} {:>12} {:>10}  {}\n", mebibytes(step["process_bytes"]),
                 (now - before.value_or(now)) / (1 << 20), mebibytes(step["device_growth_bytes"]),
                 mebibytes(step["resident_bytes"]), step["after"].get<std::string>());
      before = now;
    }
  }
  if (result.contains("nvidia_smi")) fmt::print("  nvidia-smi: {}\n", result["nvidia_smi"].get<std::string>());
  if (result.contains("failed")) fmt::print("  failed: {}\n", result["failed"].get<std::string>());
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

}  // namespace snug::driver_bytes

int main(int argc, char** argv) {
  using namespace snug::driver_bytes;
  bool json = false;
  bool smi = false;
  std::optional<std::size_t> sequence;
  std::string only;
  CLI::App app("What the driver takes on the GPU, step by step");
  app.add_flag("--json", json);
  app.add_flag("--smi", smi, "also what nvidia-smi says at the end of each sequence");
  app.add_option("--only", only, "sequences whose name begins so");
  app.add_option("--sequence", sequence, "this one alone, by number, in this very process");
  CLI11_PARSE(app, argc, argv);
  try {
    const std::vector<Sequence> all = sequences();
    if (sequence) {
      run_one(all.at(*sequence), smi);
      return 0;
    }
    Json results = Json::array();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].name.starts_with(only)) continue;
      results.push_back(run_in_process(i, all[i], smi));
      if (!json) print(results.back());
    }
    if (json) std::puts(results.dump().c_str());
    return std::ranges::any_of(results, [](const Json& result) { return result.contains("failed"); }) ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "driver_bytes: {}\n", error.what());
    return 1;
  }
}
