// A run in a folder, as `snug train` makes it, from C++: trained inside a budget, stopped, and resumed for longer.
// usage: run_a_recipe [cpu|cuda]

#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <string>

#include <snug/snug.h>

namespace {

int run(const std::string& folder, const std::string& device) {
  snug::Recipe recipe("small-cnn");
  recipe.set("device", device)
      .set("budget", "2.5MB")
      .set("epochs", "2")
      .set("schedule.kind", "cosine")
      .set("schedule.warmup_steps", "5");

  snug::Run begun = snug::Run::begin(recipe, {.folder = folder});
  std::printf("planned   %.2f MB of 2.50 MB, microbatches of %lld, checkpoint %s; plain training would take %.2f MB\n",
              static_cast<double>(begun.memory().planned_peak_bytes) / 1e6, static_cast<long long>(begun.memory().microbatch),
              begun.memory().checkpoint.c_str(), static_cast<double>(begun.memory().plain_peak_bytes) / 1e6);
  const snug::RunResult first = begun.train({.on_step = [&](const snug::RunStep& step) {
    if (step.step == 10) begun.stop();  // as Ctrl-C does for the command
  }});
  std::printf("stopped   after %llu of %llu steps\n", static_cast<unsigned long long>(first.steps),
              static_cast<unsigned long long>(begun.total_steps()));
  return 0;
}

int go_on(const std::string& folder) {
  snug::Run resumed = snug::Run::resume(folder, {{"epochs", "3"}});
  const snug::RunResult result = resumed.train();
  std::printf("resumed   to step %llu: test loss %.4f, accuracy %.1f%%, measured %.2f MB\n",
              static_cast<unsigned long long>(result.steps), *result.test_loss, 100 * *result.test_score,
              static_cast<double>(result.measured_peak_bytes) / 1e6);
  if (result.measured_peak_bytes == resumed.memory().planned_peak_bytes) return 0;
  std::fprintf(stderr, "the measured peak is not the planned one\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("snug_example_run_" + std::to_string(std::random_device()()));
  try {
    const int code = run(folder.string(), argc > 1 ? argv[1] : "cpu") + go_on(folder.string());
    std::filesystem::remove_all(folder);
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
