// Whatever the processor can do, a plan says what it is computed with, and warns where that is slow.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/messages.h"

namespace snug::cli {
namespace {

// With oneDNN limited to some instructions.
Ended run_limited(const std::vector<std::string>& arguments, const char* instructions) {
  return run_snug(arguments, [&] { setenv("ONEDNN_MAX_CPU_ISA", instructions, 1); });
}

TEST(Instructions, AreNamedBesideTheKernelsWithWhatLimitsThem) {
  std::vector<std::string> plan{"plan", "small-cnn", "--batch", "4", "--kernels"};
  const Ended text = run_limited(plan, "SSE41");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("\nInstructions: sse41 (ONEDNN_MAX_CPU_ISA=SSE41)\n"), std::string::npos) << text.out;
  plan.emplace_back("--json");
  const nlohmann::json json = nlohmann::json::parse(run_limited(plan, "SSE41").out);
  EXPECT_EQ(json.at("instructions").at("set"), "sse41");
  EXPECT_EQ(json.at("instructions").at("limited_by"), "ONEDNN_MAX_CPU_ISA=SSE41");
}

// So little workspace leaves only the reference for some gradients.
TEST(ReferenceKernels, AreWarnedAboutWhereTheyDoMuchOfTheWork) {
  for (const std::string command : {"plan", "profile"}) {
    const Ended ended = run_limited(
        {command, "wrn-10-1", "--batch", "4", "--threads", "1", "--nonzero", "0.3", "--workspace-limit", "70KB", "--json"},
        "AVX2");
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_TRUE(support::mentions(ended.err, {"2", "nodes", "sparse_conv2d_grad_weight", "'group3.block1.conv2'",
                                              "'group3.block1.conv1'", "'snug plan --kernels'"}));
    const nlohmann::json nodes = nlohmann::json::parse(ended.out).at("reference_kernels");
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes.at(0).at("kernel"), "reference_sparse_conv2d_grad_weight");
    EXPECT_GT(nodes.at(0).at("share").get<double>(), 0.01);
  }
}

struct Planned {
  const char* model;
  const char* precision;
  std::vector<std::string> flags = {};
};

class WholeZoo : public ::testing::TestWithParam<const char*> {};

TEST_P(WholeZoo, RunsOnKernelsMadeForTheMachine) {
  const Planned plans[] = {{"small-cnn", "fp32"},
                           {"small-cnn", "bf16"},
                           {"small-cnn", "fp16"},
                           {"wrn-10-1", "fp32", {"--compress", "4"}},
                           {"wrn-10-1", "bf16", {"--nonzero", "0.3"}},
                           {"wrn-10-1", "fp16", {"--statistics-group", "2"}},
                           {"preresnet-20", "bf16"},
                           {"resnet-18", "fp32"},
                           {"resnet-18", "bf16"},
                           {"resnet-50", "bf16"},
                           {"vgg-16", "fp16"}};
  for (const Planned& plan : plans) {
    std::vector<std::string> arguments{"plan", plan.model, "--batch", "4", "--precision", plan.precision, "--json"};
    arguments.insert(arguments.end(), plan.flags.begin(), plan.flags.end());
    const Ended ended = run_limited(arguments, GetParam());
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ(nlohmann::json::parse(ended.out).at("reference_kernels").dump(), "[]") << plan.model << " " << plan.precision;
    EXPECT_EQ(ended.err, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Instructions, WholeZoo, ::testing::Values("AVX2", "AVX512_CORE", "AVX512_CORE_BF16"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace snug::cli
