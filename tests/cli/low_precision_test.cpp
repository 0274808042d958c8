// Training in 16 bits learns what training in fp32 does, with everything that a user does with a run.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using support::TemporaryFolder;

// Five epochs of the embedded digits, on one thread: the bits then do not depend on how many cores there are.
nlohmann::json train(const std::string& folder, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments{"train",      "small-cnn", "--threads", "1", "--batch", "30",   "--steps",      "250",
                                     "--schedule", "cosine",    "--seed",    "1", "--out",   folder, "--eval-every", "250"};
  arguments.emplace_back("--json");
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Ended ended = run_snug(arguments);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return nlohmann::json::parse(ended.out);
}

TEST(LowPrecision, LearnsWhatSinglePrecisionLearns) {
  const TemporaryFolder folder;
  const nlohmann::json single = train((folder / "fp32").string(), {});
  const auto bytes = [](const nlohmann::json& run) { return run.at("measured_peak_bytes").get<std::int64_t>(); };
  EXPECT_GT(single.at("test_accuracy").get<double>(), 0.85);
  const std::vector<std::vector<std::string>> runs{
      {"--precision", "bf16"}, {"--precision", "bf16", "--rounding", "nearest"}, {"--precision", "fp16"}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const nlohmann::json run = train((folder / std::to_string(i)).string(), runs[i]);
    EXPECT_EQ(run.at("precision"), runs[i][1]);
    EXPECT_NEAR(run.at("test_accuracy").get<double>(), single.at("test_accuracy").get<double>(), 0.015) << i;
    EXPECT_LT(bytes(run), 0.62 * static_cast<double>(bytes(single))) << i;
    EXPECT_EQ(run.contains("loss_scale"), runs[i][1] == "fp16") << i;
    if (runs[i][1] == "fp16") {
      EXPECT_GE(run.at("loss_scale").get<double>(), 1024) << i;
      EXPECT_LT(run.at("skipped_steps").get<int>(), 10) << i;
    }
  }
}

// Stops after 6 of 12 steps: the weights must be those of a run that was never stopped, to the bit.
TEST(LowPrecision, RunsGoOnEvaluateAndExport) {
  const TemporaryFolder folder;
  for (const std::string precision : {"bf16", "fp16"}) {
    const auto begin = [&](const std::string& name, const std::string& steps) {
      const std::string path = (folder / (precision + name)).string();
      const Ended ended = run_snug({"train", "small-cnn", "--precision", precision, "--steps", steps, "--out", path});
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
      return path;
    };
    const std::string whole = begin("whole", "12"), parted = begin("parted", "6");
    std::stringstream recipe;
    recipe << std::ifstream(parted + "/recipe.toml").rdbuf();
    std::string text = recipe.str();
    text.replace(text.find("steps = 6"), 9, "steps = 12");
    std::ofstream(parted + "/recipe.toml") << text;
    EXPECT_EQ(run_snug({"train", "--resume", "--out", parted}).exit_code, 0);
    EXPECT_EQ(run_snug({"eval", parted}).exit_code, 0);
    std::vector<std::string> weights;
    for (const std::string& run : {whole, parted}) {
      EXPECT_EQ(run_snug({"export", run, "--to", run + ".safetensors"}).exit_code, 0);
      std::stringstream bytes;
      bytes << std::ifstream(run + ".safetensors", std::ios::binary).rdbuf();
      weights.push_back(bytes.str());
    }
    EXPECT_TRUE(weights[0] == weights[1]) << precision;
    // What was trained with 16 bits can be trained on with 32.
    const Ended on = run_snug({"train", "small-cnn", "--init", whole + ".safetensors", "--steps", "1", "--out", whole + "32"});
    EXPECT_EQ(on.exit_code, 0) << on.err;
  }
}

TEST(LowPrecision, IsChosenForABudgetWhereItIsAllowed) {
  const TemporaryFolder folder;
  const std::vector<std::string> plan{"plan", "wrn-10-1", "--batch", "20", "--budget", "2.2MB", "--json"};
  const auto with = [](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_snug(arguments);
  };
  EXPECT_EQ(with(plan, {}).exit_code, 3);
  const Ended planned = with(plan, {"--allow", "exact,reassociated,microbatch,precision"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(nlohmann::json::parse(planned.out).at("precision"), "bf16");
  // A precision that is given is obeyed.
  EXPECT_EQ(with(plan, {"--precision", "fp32", "--allow", "exact,reassociated,microbatch,precision"}).exit_code, 3);
  const Ended trained = run_snug({"train", "wrn-10-1", "--batch", "20", "--budget", "2.2MB", "--steps", "1", "--allow",
                                  "exact,reassociated,microbatch,precision", "--json", "--out", (folder / "run").string()});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(trained.out).at("precision"), "bf16");
}

// Seconds of a step by the fixed table, when oneDNN may use no more than these instructions.
double predicted_seconds(const std::string& precision, const char* instructions) {
  const Ended ended =
      run_snug({"plan", "wrn-28-2", "--batch", "10", "--threads", "1", "--costs", "none", "--precision", precision, "--json"},
               [&] { setenv("ONEDNN_MAX_CPU_ISA", instructions, 1); });
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return nlohmann::json::parse(ended.out).at("predicted_step_seconds").get<double>();
}

TEST(LowPrecision, TheFixedTableFollowsWhatTheProcessorMultiplies) {
  const double single = predicted_seconds("fp32", "ALL");
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") != 0) {
    EXPECT_GT(predicted_seconds("bf16", "AVX512_CORE"), 2 * single) << "made from several instructions";
  }
  if (__builtin_cpu_supports("avx512bf16") != 0) {
    const double pairs = predicted_seconds("bf16", "AVX512_CORE_BF16");
    if (__builtin_cpu_is("amdfam19h")) {
      EXPECT_LT(pairs, 0.6 * single) << "pairs in one instruction";
    } else if (__builtin_cpu_is("intel")) {
      EXPECT_GT(pairs, 1.4 * single) << "half as many of those";
    }
  }
  EXPECT_NEAR(predicted_seconds("bf16", "AVX2"), single, 0.1 * single) << "through floats";
#endif
  EXPECT_NEAR(predicted_seconds("fp16", "ALL"), single, 0.1 * single) << "through floats";
}

}  // namespace
}  // namespace snug::cli
